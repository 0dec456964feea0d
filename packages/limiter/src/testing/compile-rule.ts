import type { Algorithm } from '../algorithms/algorithm.ts'
import { algorithms } from '../algorithms/index.ts'
import { partMeter } from '../algorithms/part.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { parseRate } from '../rules/limit-text.ts'
import { limitOf } from '../rules/schema/limit.ts'
import { shapeOf } from '../rules/schema/option-shape.ts'
import * as z from '../shapes/index.ts'
import type { TimelineRule } from './timeline.ts'

const QUEUE_SIZE = 1000
const QUEUE_TIMEOUT_MS = 1000

/** Makes a rule from valid options, without the parser; it counts by `call.attributes.key` by default. */
export function compileRule(
  rule: TimelineRule,
  parts: Partial<Pick<CompiledRule, 'id' | 'match' | 'key'>> = {},
  known: readonly Algorithm[] = algorithms,
): CompiledRule {
  const { limit, algorithm: name = 'sliding-window', whenFull = 'refuse', queue = {}, ...own } = rule
  const algorithm = known.find(candidate => candidate.name === name)
  if (algorithm === undefined) throw new Error(`there is no algorithm ${name}`)
  const limits = [limit].flat().map(text => limitOf(algorithm).parse(text))
  const options = z.strictObject(shapeOf(algorithm.options)).parse(own)
  const timeoutMs = queue.timeout === undefined ? undefined : parseRate(`1/${queue.timeout}`)!.periodMs
  const waitOptions = { timeoutUs: timeoutMs === undefined ? undefined : timeoutMs * 1000 }
  const waits = whenFull === 'wait'
  const meters = limits.map(limit => algorithm.meter(limit, options, waits ? waitOptions : undefined))
  return {
    id: 'rule',
    match: {},
    by: ['key'],
    key: call => call.attributes?.key ?? 'nobody',
    keyParts: [],
    origin: undefined,
    distributed: false,
    whenStoreDown: 'local',
    lease: 'auto',
    algorithm: name,
    limits,
    meters,
    partOf: part =>
      limits.map(limit => partMeter(algorithm, { limit, options }, part, waits ? waitOptions : undefined)),
    terms: [limits, options, waits ? waitOptions : undefined],
    answer: { status: 503, headers: 'draft-11' },
    enforced: whenFull !== 'shadow',
    queueSize: waits ? (queue.size ?? QUEUE_SIZE) : 0,
    queueTimeoutMs: timeoutMs ?? QUEUE_TIMEOUT_MS,
    queuePerCaller: queue.perCaller,
    cost: undefined,
    settles: algorithm.limit === 'rate',
    overrun: undefined,
    holdMs: undefined,
    estimates: false,
    mostAtOnce: Math.min(...meters.map((meter, level) => meter.rate?.most ?? limits[level]!.count)),
    countWhen: undefined,
    exempts: undefined,
    denies: undefined,
    isAmbiguous: undefined,
    isListed: false,
    costInput: undefined,
    blockMs: undefined,
    blockClears: false,
    ...parts,
  }
}
