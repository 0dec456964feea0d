import type { Algorithm, Limit, Terms } from '../../algorithms/algorithm.ts'
import { duration } from '../../common/duration-schema.ts'
import * as z from '../../shapes/index.ts'
import { byFault } from '../dimension-name.ts'
import type { Plans } from '../rule.ts'
import { limitOf } from './limit.ts'
import { shapeOf } from './option-shape.ts'
import { textOf } from './shape.ts'
import type { Vocabulary } from './vocabulary.ts'

/** More values than this are not limits of plans but of customers, who have limits from outside. */
const MOST_VALUES = 100
const LONGEST_VALUE = 256

/** A limit that depends on the caller, as a rule states it. */
export interface PlansInput {
  readonly default: Limit
  readonly plans: Plans
}

/** Makes the schema of `{ by, values, default }` and `{ from, default }`. */
export function plansSchema(
  algorithm: Algorithm,
  vocabulary: Vocabulary,
  identified: readonly string[],
): z.Schema<PlansInput, unknown> {
  const limit = limitOf(algorithm)
  const own = z.strictObject({ ...shapeOf(algorithm.options), limit }).transform((all): Terms => {
    const { limit, ...options } = all
    return { limit, options }
  })
  const value = z.union([limit.transform((one): Terms => ({ limit: one, options: {} })), own])
  const missing = 'is missing: write the limit of callers without a value of their own, such as default: 100/h'
  return z
    .strictObject({
      by: textOf(text => byFault(text, vocabulary, identified), 256)
        .optional()
        .describe('The dimension that names the plan of a caller, such as jwt:plan.'),
      values: z
        .record(z.string().min(1).max(LONGEST_VALUE), value)
        .refine(values => Object.keys(values).length <= MOST_VALUES, {
          error: `has more than ${MOST_VALUES} values: give each customer a limit by from, or by an override`,
        })
        .optional()
        .describe('The limit of each value: 5000/h, or { limit: 5000/h, burst: 200 }.'),
      from: textOf(fromFault)
        .optional()
        .describe(
          'Where limits of single callers are: redis:limits:{account}, or a URL such as https://plans/{account}.',
        ),
      refresh: duration
        .optional()
        .describe('How long a limit from outside is used before it is asked for again; default: 60s.'),
      overrides: z.boolean().optional().describe('Whether operators set limits of single callers by the admin API.'),
      default: limit.refine(one => one !== undefined, { error: missing }).describe('The limit of all other callers.'),
    })
    .superRefine(({ by, values, from, refresh, overrides }, context) => {
      const add = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
      if (by !== undefined && values === undefined) add('by', 'needs values: write values: { pro: 5000/h }')
      if (by === undefined && values !== undefined) add('values', 'needs by, the dimension that has them: by: jwt:plan')
      if (from === undefined && refresh !== undefined) add('refresh', 'is only for limits from outside: add from')
      if (by === undefined && from === undefined && !overrides) {
        context.addIssue({ code: 'custom', message: 'depends on nothing: add by and values, from, or overrides: true' })
      }
    })
    .transform(({ by, values = {}, from, refresh = 60_000, overrides = false, default: standard }) => ({
      default: standard,
      plans: {
        ...(by === undefined ? {} : { by }),
        values,
        ...(from === undefined ? {} : { from: { address: from, refreshMs: refresh } }),
        overrides,
      },
    }))
}

/** Returns what is wrong with an address of limits. */
function fromFault(text: string): string | undefined {
  if (text.startsWith('function:')) return undefined
  const isKnown = text.startsWith('redis:') ? text.length > 'redis:'.length : URL.canParse(text.replaceAll(/[{}]/g, ''))
  if (!isKnown || !/^(redis:|https?:\/\/)/.test(text)) {
    return 'must be redis:<key> or a URL with the caller in braces: redis:limits:{account}, https://plans.internal/{account}'
  }
  if (!text.startsWith('redis:')) {
    // a URL parser skips tabs and line ends, reads \ as /, and finds the host behind any number of slashes
    if (/[\\\s\p{C}]/u.test(text)) return 'must have no backslash, blank or control character: write %5C or %20'
    const [host = ''] = text.slice(text.indexOf('://') + 3).split(/[/?#]/, 1)
    if (host === '') return 'names no host: write it behind two slashes, as in https://plans/{account}'
    if (/[{}]/.test(host))
      return 'must not let callers choose the host: write them into the path, as in https://plans/{account}'
    if (host.includes('@')) return 'must not hold credentials: let a server on a private network answer without them'
  }
  return /\{[^{}]+\}/.test(text)
    ? undefined
    : 'names no caller: write a dimension of by in braces, as in redis:limits:{account}'
}
