import type { Algorithm, Limit, Meter } from '../algorithms/algorithm.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { compileKey, type KeyReader } from '../dimensions/key.ts'
import type { Answer, Match, Rule, RuleDocument } from './rule.ts'

/** A rule ready to judge calls. */
export interface CompiledRule {
  readonly id: string
  readonly match: Match
  readonly by: readonly string[]
  readonly key: KeyReader
  readonly algorithm: string
  readonly limits: readonly Limit[]
  readonly meters: readonly Meter[]
  readonly answer: Answer
  readonly enforced: boolean
  /** Calls of this rule that may wait in this process, and how long for a place that no clock frees. */
  readonly queueSize: number
  readonly queueTimeoutMs: number
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
  return {
    id: rule.id,
    match: rule.match,
    by: rule.by,
    algorithm: rule.algorithm,
    key: compileKey(rule.by, document.identify, dimensions),
    limits: rule.limits,
    meters: rule.limits.map(limit => algorithm.meter(limit, rule.options, patience)),
    answer: { ...document.answer, ...rule.answer },
    enforced: rule.whenFull !== 'shadow',
    queueSize: waits ? rule.queue.size : 0,
    queueTimeoutMs: timeoutMs ?? DEFAULT_QUEUE_TIMEOUT_MS,
  }
}
