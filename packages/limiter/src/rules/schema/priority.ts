import { duration } from '../../common/duration-schema.ts'
import * as z from '../../shapes/index.ts'
import { byFault } from '../dimension-name.ts'
import { headerFault } from '../match/pattern.ts'
import { levelNamed, namedLevels } from '../priority/levels.ts'
import type { OverloadSettings, PriorityEntry } from '../rule.ts'
import { show } from '../show.ts'
import { suggest } from '../suggest.ts'
import { matchSchema } from './match.ts'
import { textOf } from './shape.ts'
import type { Vocabulary } from './vocabulary.ts'

const names = Object.keys(namedLevels)

const level = z
  .union([z.enum(names), z.int().min(0).max(100)], {
    error: ({ input }) => {
      const meant = typeof input === 'string' ? suggest(input, names) : undefined
      const remedy = meant ? `did you mean ${meant}?` : `write ${names.join(', ')} or a number from 0 to 100`
      return `${show(input)} is no level: ${remedy}`
    },
  })
  .transform(value => levelNamed(value)!)

/** Makes the schema of the levels of calls; the first line that has a level for a call decides. */
export function prioritySchema(
  vocabulary: Vocabulary,
  identified: readonly string[],
): z.Schema<readonly PriorityEntry[]> {
  const entry = z
    .strictObject({
      match: matchSchema.default({}).describe('Which calls; left out, all.'),
      level: level.optional().describe('Their level: critical, default, sheddable, or a number from 0 to 100.'),
      by: textOf(text => byFault(text, vocabulary, identified), 256)
        .optional()
        .describe('A dimension, such as jwt:plan, whose values have levels.'),
      levels: z.record(z.string().max(1024), level).optional().describe('The level of each value of `by`.'),
      header: textOf(headerFault, 128)
        .transform(name => name.toLowerCase())
        .optional()
        .describe('A header with the level, believed from trusted proxies only.'),
    })
    .superRefine(({ level, by, levels, header }, context) => {
      const forms = [level, by, header].filter(one => one !== undefined).length
      if (forms === 1 && (by === undefined) === (levels === undefined)) return
      const message =
        'must have a level, or by with levels, or a header: - { match: { path: /pay/** }, level: critical }'
      context.addIssue({ code: 'custom', message })
    })
  return z
    .array(entry)
    .max(1000)
    .superRefine((entries, context) => {
      entries.forEach(({ match }, index) => {
        const before = entries.findIndex(
          (other, at) => at < index && other.level !== undefined && covers(other.match, match),
        )
        if (before < 0) return
        const message = `is never reached, since line ${before + 1} has a level for the same calls: put it before that one, or leave it out`
        context.addIssue({ code: 'custom', path: [index], message })
      })
    })
}

function covers(one: object, other: object): boolean {
  return Object.keys(one).length === 0 || JSON.stringify(one) === JSON.stringify(other)
}

/** Makes the schema of the thresholds at which this process refuses calls because it has too much to do. */
export function overloadSchema(vocabulary: Vocabulary, identified: readonly string[]): z.Schema<OverloadSettings> {
  return z
    .strictObject({
      eventLoopDelay: duration.default(20).describe('How late timers may be; default: 20ms.'),
      eventLoopUtilization: z
        .number()
        .min(0.5)
        .max(1)
        .default(0.98)
        .describe('The busy part of an interval; default: 0.98.'),
      callWait: duration.default(20).describe('How long calls may wait before they are handled; default: 20ms.'),
      heaviestFirst: textOf(text => byFault(text, vocabulary, identified), 256)
        .optional()
        .describe('The dimension by which the heaviest callers of a level are refused first; left out: at random.'),
    })
    .transform(({ eventLoopDelay, eventLoopUtilization, callWait, heaviestFirst }) => ({
      eventLoopDelayMs: eventLoopDelay,
      eventLoopUtilization,
      callWaitMs: callWait,
      ...(heaviestFirst === undefined ? {} : { heaviestFirst }),
    }))
}
