import { duration } from '../../common/duration-schema.ts'
import * as z from '../../shapes/index.ts'
import type { RemoteAddress } from '../rule.ts'
import { joinNames } from '../show.ts'
import { suggest } from '../suggest.ts'
import { shapeOf } from './option-shape.ts'
import type { Vocabulary } from './vocabulary.ts'

type Kind = Vocabulary['sources'][number]

/** Returns the options of one config center. */
export function remoteSchema(kind: Kind): z.Schema<RemoteAddress> {
  const own = {
    [kind.name]: z.string().min(1).max(2048).describe('The address of the config center.'),
    startTimeout: duration.default(2000).describe('How long the start may wait for it; default: 2s.'),
    snapshot: z.string().min(1).max(4096).optional().describe('A file that keeps its last good rules.'),
  }
  return z
    .strictObject({ ...own, ...shapeOf(kind.options), ...own })
    .transform((input: Readonly<Record<string, unknown>>, context): RemoteAddress => {
      const { [kind.name]: address, startTimeout, snapshot, ...options } = input as Record<string, string>
      const read = { source: kind.name, address: address!, options, startTimeoutMs: Number(startTimeout), snapshot }
      try {
        kind.create(read.address, options)
      } catch (error) {
        const message = error instanceof Error ? error.message : 'is invalid'
        context.addIssue({ code: 'custom', path: [kind.name], message })
      }
      return read
    })
}

/** Returns the schema for the value of `remote`: that of the config center it names. */
export function remoteSchemaFor(value: unknown, vocabulary: Vocabulary): z.Schema<RemoteAddress> {
  const options = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const [kind, ...more] = vocabulary.sources.filter(({ name }) => options.includes(name))
  if (kind && more.length === 0) return remoteSchema(kind)
  const names = vocabulary.sources.map(({ name }) => name)
  const meant = options.map(word => suggest(word, names)).find(word => word !== undefined)
  const hint = !kind && meant ? `: did you mean ${meant}?` : ', and only one'
  return z.custom<RemoteAddress>(() => false, { error: `must name one of ${joinNames(names)}${hint}` })
}
