import type { Algorithm, Limit, Meter } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { compileKey, type KeyReader } from '../dimensions/key.ts'
import { DianaError } from '../errors.ts'
import type { Answer, Match, Rule, RuleDocument } from './rule.ts'

/** A rule ready to judge calls. */
export interface CompiledRule {
  readonly id: string
  readonly match: Match
  readonly by: readonly string[]
  readonly key: KeyReader
  readonly algorithm: string
  readonly origin: string | undefined
  readonly limits: readonly Limit[]
  readonly meters: readonly Meter[]
  /** What the meters were made of: with equal terms they count alike. */
  readonly terms: readonly unknown[]
  readonly answer: Answer
  readonly enforced: boolean
  /** Counted for the whole fleet. */
  readonly distributed: boolean
  /** What the rule does while the store cannot be asked. */
  readonly emergency: 'local' | 'allow' | 'refuse'
  /** Calls of this rule that may wait in this process, and how long for a place that no clock frees. */
  readonly queueSize: number
  readonly queueTimeoutMs: number
  /** What a call costs by this rule; undefined where it is what the call says. */
  readonly cost: ((call: Call) => number) | undefined
  /** Whether the cost of a call may be settled afterwards. */
  readonly settles: boolean
  /** Whether a call that ended so counts; undefined where every call does. */
  readonly countWhen: ((outcome: CallOutcome) => boolean) | undefined
}

/** How a call ended; nothing known is a failure. */
export interface CallOutcome {
  readonly status?: number | undefined
  readonly failed?: boolean | undefined
}

const DEFAULT_QUEUE_TIMEOUT_MS = 1000

export function compileRules(
  document: RuleDocument,
  algorithms: readonly Algorithm[],
  dimensions: readonly Dimension[],
): CompiledRule[] {
  return document.rules.filter(rule => rule.enabled).map(rule => compileRule(rule, document, algorithms, dimensions))
}

function compileRule(
  rule: Rule,
  document: RuleDocument,
  algorithms: readonly Algorithm[],
  dimensions: readonly Dimension[],
): CompiledRule {
  const algorithm = algorithms.find(candidate => candidate.name === rule.algorithm)!
  const waits = rule.whenFull === 'wait'
  const { timeoutMs } = rule.queue
  const patience = waits ? { timeoutUs: timeoutMs === undefined ? undefined : timeoutMs * 1000 } : undefined
  const meters = rule.limits.map(limit => checked(algorithm.meter(limit, rule.options, patience), rule))
  return {
    id: rule.id,
    match: rule.match,
    by: rule.by,
    algorithm: rule.algorithm,
    origin: rule.origin,
    key: compileKey(rule.by, document.identify, dimensions),
    limits: rule.limits,
    meters,
    terms: [rule.limits, rule.options, patience],
    answer: { ...document.answer, ...rule.answer },
    enforced: rule.whenFull !== 'shadow',
    distributed: rule.count === 'distributed',
    emergency: rule.whenStoreDown === 'share' ? 'local' : rule.whenStoreDown,
    queueSize: waits ? rule.queue.size : 0,
    queueTimeoutMs: timeoutMs ?? DEFAULT_QUEUE_TIMEOUT_MS,
    cost: undefined,
    settles: !meters.some(meter => meter.held),
    countWhen: undefined,
  }
}

/** A meter may be anybody's, and what has no place to count cannot count. */
function checked(meter: Meter, { id, algorithm }: Rule): Meter {
  if (Number.isSafeInteger(meter.slots) && meter.slots > 0) return meter
  const message = `rule "${id}": a meter of ${algorithm} has ${meter.slots} slots; give it 1 or more`
  throw new DianaError('BAD_RULES', message)
}
