import type { Estimate } from '../algorithms/adaptive/estimator.ts'
import type { Limit } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { formatDuration } from '../common/duration.ts'
import { describePart, type KeyPart } from '../dimensions/key.ts'
import type { CompositeStore } from '../stores/composite-store.ts'
import type { Decision } from '../verdict.ts'
import { estimateOf } from './estimate-of.ts'
import type { ListedCaller } from './rule-selector.ts'
import type { RuleState } from './rule-state.ts'

/** Why a rule would let a call pass or not. */
export interface RuleExplanation {
  readonly rule: string
  readonly algorithm: string
  /** Dimension by dimension, what the call is counted under; empty for a rule that counts all calls together. */
  readonly key: Readonly<Record<string, KeyPart>>
  /** The rule's own limit, level by level as the decisions are; those show the size of a bucket whose burst is larger. */
  readonly limits: readonly Limit[]
  /** Where a limit that depends on the caller comes from: `plan pro`, `override until …`, `default`. */
  readonly limitFrom?: string | undefined
  /** The burst that the rule states. */
  readonly burst?: number | undefined
  /** What a rule that finds its limit has found. */
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
  /** How long a block still lasts. */
  readonly leftMs?: number | undefined
  /** What that means, in words. */
  readonly means: string
}

/** The rules that match a call, and whether its caller is on a list or blocked. */
export class Explanation extends Array<RuleExplanation> {
  // map and filter of it return plain arrays
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }

  readonly #caller: readonly CallerStanding[]

  constructor(rules: readonly RuleExplanation[], caller: readonly CallerStanding[]) {
    super()
    this.push(...rules)
    this.#caller = caller
  }

  /** Whether the caller is on a list, or blocked; empty if only the counts decide. */
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

/** The permits of a call's keys that this process holds in advance, by rule; without the rules of which it holds none. */
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
  const left = formatDuration(Math.ceil(leftMs))
  const means = `blocked by rule "${rule}" for another ${left}: every call that this rule is about is refused until then`
  return { is: 'blocked', rule, leftMs, means }
}
