import type { Estimate } from '../algorithms/adaptive/estimator.ts'
import type { Limit } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { FOREVER_MS, formatDuration } from '../common/duration.ts'
import { describePart, type KeyPart } from '../dimensions/key.ts'
import { compileMatch } from '../rules/match/match.ts'
import type { Match, Rule } from '../rules/rule.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import type { Decision } from '../verdict.ts'
import type { ListedCaller } from './rule-selector.ts'
import type { RuleState } from './rule-state.ts'

/** The reasons why a rule would let a call pass or not. */
export interface RuleExplanation {
  readonly rule: string
  readonly algorithm: string
  /** Dimension by dimension, what the call is counted under; empty for a rule that counts all calls together. */
  readonly key: Readonly<Record<string, KeyPart>>
  /** The rule's own limit, level by level as the decisions are; those show the size of a bucket whose burst is larger. */
  readonly limits: readonly Limit[]
  /** The source of a limit that depends on the caller: `plan pro`, `override until …`, `default`. */
  readonly limitFrom?: string | undefined
  /** The burst that the rule states. */
  readonly burst?: number | undefined
  /** The findings of a rule that finds its limit. */
  readonly estimate?: Estimate | undefined
  readonly decisions: readonly Decision[]
  /** Permits that the caller has beside the limit; left out if the rule has no credit, or it cannot be read. */
  readonly credit?: number | undefined
  /** Permits of this key that this process holds in advance; left out if there are none. */
  readonly leased?: number | undefined
}

/** A list or a block that decides about a caller regardless of counts. */
export interface CallerStanding {
  readonly is: 'allowed' | 'denied' | 'blocked'
  /** The rule that lists or blocks the caller; none if the whole document does. */
  readonly rule?: string | undefined
  /** The time until the end of a block. */
  readonly leftMs?: number | undefined
  /** The meaning of that, in words. */
  readonly means: string
}

/** The rules that match a call, and whether its caller is on a list or blocked. */
export class Explanation extends Array<RuleExplanation> {
  // its methods map and filter return plain arrays
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }

  readonly #caller: readonly CallerStanding[]

  constructor(rules: readonly RuleExplanation[], caller: readonly CallerStanding[]) {
    super()
    this.push(...rules)
    this.#caller = caller
  }

  /** Returns the lists and blocks that the caller is on; empty if only the counts decide. */
  get caller(): readonly CallerStanding[] {
    return this.#caller
  }
}

export function explainRules(
  call: Call,
  met: readonly RuleState[],
  decisions: readonly Decision[],
  {
    shared,
    nowUs,
    credits,
  }: {
    readonly shared: CompositeStore
    readonly nowUs: number
    /** By rule. */
    readonly credits: ReadonlyMap<string, number>
  },
): RuleExplanation[] {
  const leased = leasedFor(call, met, shared)
  return met.map(state => {
    const { rule } = state
    const estimate = estimateOf(state, rule.key(call), nowUs)
    const parts = rule.keyParts.map(([name, read]) => [name, describePart(read(call))] as const)
    return {
      rule: rule.id,
      algorithm: rule.algorithm,
      key: Object.fromEntries(parts),
      limits: rule.limits,
      ...(rule.limitFrom === undefined ? {} : { limitFrom: rule.limitFrom }),
      ...(rule.burst === undefined ? {} : { burst: rule.burst }),
      ...(estimate === undefined ? {} : { estimate }),
      decisions: decisions.filter(decision => decision.rule === rule.id),
      ...(credits.has(rule.id) ? { credit: credits.get(rule.id) } : {}),
      ...(leased.has(rule.id) ? { leased: leased.get(rule.id) } : {}),
    }
  })
}

/** Returns the permits of a call's keys that this process holds in advance, by rule; rules without such permits are left out. */
export function leasedFor(call: Call, met: readonly RuleState[], shared: CompositeStore): Map<string, number> {
  const leased = new Map<string, number>()
  for (const { rule, counter } of met) {
    const permits = counter && shared.leasedOf(counter, rule.key(call))
    if (permits) leased.set(rule.id, permits)
  }
  return leased
}

export function explainList({ list, rule }: ListedCaller): CallerStanding {
  const of = rule === undefined ? '' : ` of rule "${rule}"`
  if (list === 'deny') {
    const which = rule === undefined ? 'every call is' : 'every call that this rule is about is'
    return {
      is: 'denied',
      rule,
      means: `on the deny list${of}: ${which} refused with status 403, whatever was counted`,
    }
  }
  const means =
    rule === undefined
      ? 'on the allow list: every call passes, and no rule counts it'
      : `on the allow list${of}: this rule neither counts nor refuses the call, other rules do`
  return { is: 'allowed', rule, means }
}

export function explainBlock(rule: string, leftMs: number): CallerStanding {
  const isEndless = leftMs > FOREVER_MS / 2
  const left = isEndless ? 'without end' : `for another ${formatDuration(Math.ceil(leftMs))}`
  const means = `blocked by rule "${rule}" ${left}: every call that this rule is about is refused ${isEndless ? 'until it is unblocked' : 'until then'}`
  return { is: 'blocked', rule, leftMs, means }
}

/** A rule that does not decide a call, and why. */
export interface RuleMiss {
  readonly rule: string
  readonly reason: string
}

/** Says why each of these rules does not match a call. */
export function explainMisses(call: Call, rules: readonly Rule[]): RuleMiss[] {
  return rules.map(rule => ({ rule: rule.id, reason: reasonOf(rule, call) }))
}

function reasonOf({ enabled, match }: Rule, call: Call): string {
  if (!enabled) return 'it is off (enabled: false)'
  if (match.none) return 'only calls that name it are counted (match: none)'
  for (const part of ['method', 'host', 'path', 'header', 'attribute'] as const) {
    const only: Match = { [part]: match[part] }
    if (match[part] === undefined || compileMatch([{ match: only }])(call, []) > 0) continue
    if (part === 'header') return `its headers are ${namedValues(match.header)}`
    if (part === 'attribute') return `its attributes are ${namedValues(match.attribute)}`
    return `its ${part} is ${match[part]!.join(', ')}, not ${call[part] ?? 'given'}`
  }
  return 'it lets this caller off (allow, or missing: skip)'
}

function namedValues(values: Match['header'] = {}): string {
  return Object.entries(values)
    .map(([name, values]) => `${name}: ${values.join(' or ')}`)
    .join('; ')
}

const MOST_KEYS = 1000

/** Returns what a rule that finds its limit has found for a key; undefined for other rules. */
export function estimateOf({ table }: RuleState, key: string, nowUs: number): Estimate | undefined {
  const slot = table.find(key)
  return table.meters[0]?.held?.learns?.estimate(table.state(slot), table.base(slot), nowUs)
}

/** Returns the findings for the key with the most calls in flight, among the first thousand. */
export function busiestEstimate(state: RuleState, nowUs: number): Estimate | undefined {
  if (state.table.meters[0]?.held?.learns === undefined) return undefined
  let busiest: Estimate | undefined
  let keys = 0
  for (const [key] of state.table.entries()) {
    const estimate = estimateOf(state, key, nowUs)!
    if (busiest === undefined || estimate.inFlight > busiest.inFlight) busiest = estimate
    if (++keys >= MOST_KEYS) break
  }
  return busiest
}
