import type { Algorithm, Limit, Meter, Part, Terms } from '../algorithms/algorithm.ts'
import type { BlockGrowth } from '../algorithms/block.ts'
import { partMeter } from '../algorithms/part.ts'
import type { Call } from '../call.ts'
import { type CompiledCost, compileCosts } from '../costs/compile-costs.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { compileKey, compilePart, fieldOf, type KeyInput, type KeyReader, readerOf } from '../dimensions/key.ts'
import { type CallTest, compileAmbiguity } from '../dimensions/reading/ambiguity.ts'
import { DianaError } from '../errors.ts'
import { type CompiledPlans, compilePlans } from './compile-plans.ts'
import { compileCallers, compileDenied } from './match/callers.ts'
import { type CallOutcome, compileCountWhen, compileResetWhen } from './match/count-when.ts'
import { compileOtherReadings } from './match/reading.ts'
import { compilePriorities, type Priorities } from './priority/priorities.ts'
import type { Answer, Match, Rule, RuleDocument, WhenStoreDown } from './rule.ts'
import { type CostInput, compileCost, type SettlementTerms, settlementTerms } from './schema/cost.ts'

/** A rule ready to decide calls. With `holdMs`, its charges are reservations; `overrun` is undefined if the rule does not say it. */
export interface CompiledRule extends SettlementTerms {
  readonly id: string
  readonly match: Match
  readonly by: readonly string[]
  readonly key: KeyReader
  /** The key dimension by dimension, as it is explained. */
  readonly keyParts: readonly (readonly [name: string, read: KeyReader, field?: Dimension['field']])[]
  readonly algorithm: string
  readonly origin: string | undefined
  readonly limits: readonly Limit[]
  /** The burst that the rule states, as it is explained. */
  readonly burst?: number | undefined
  readonly meters: readonly Meter[]
  /** The meters of one process's share of the limit. */
  readonly partOf: (part: Part) => readonly Meter[]
  /** The input of the meters: with equal terms they count alike. */
  readonly terms: readonly unknown[]
  readonly answer: Answer
  readonly enforced: boolean
  /** True if it is counted for the whole fleet. */
  readonly distributed: boolean
  /** The behavior of the rule while the store is down. */
  readonly whenStoreDown: WhenStoreDown
  /** Says whether processes hold permits of it in advance. */
  readonly lease: 'auto' | 'off'
  /** The number of calls of this rule that may wait in this process, and the longest wait for a concurrency slot. */
  readonly queueSize: number
  readonly queueTimeoutMs: number
  /** The number of calls of one caller that may wait; undefined if that depends on how many places are left. */
  readonly queuePerCaller?: number | undefined
  /** The cost of a call by this rule; undefined if the caller of `check` gives it. */
  readonly cost: ((call: Call) => number) | undefined
  /** The source of that cost. */
  readonly costInput: CostInput | undefined
  /** The way in which its cost is read from requests and answers; undefined if it is not. */
  readonly measured?: CompiledCost | undefined
  /** True if the cost of a call may be settled afterwards. */
  readonly settles: boolean
  /** True if the cost that it reads is an estimate, which is never more than the rule can hold. */
  readonly estimates: boolean
  /** The most that it can ever admit at once. */
  readonly mostAtOnce: number
  /** True if a call with this outcome counts; undefined if every call does. */
  readonly countWhen: ((outcome: CallOutcome) => boolean) | undefined
  /** True if a call with this outcome clears the count of its caller; undefined if none does. */
  readonly resetWhen?: ((outcome: CallOutcome, call: Call) => boolean) | undefined
  /** Calls that match but are exempt; undefined if there are none. */
  readonly exempts: ((call: Call) => boolean) | undefined
  /** Calls that it refuses regardless of counts; undefined if there are none. */
  readonly denies: ((call: Call) => boolean) | undefined
  /** Calls whose key depends on how a service reads them, which it refuses, too; undefined if there are none. */
  readonly isAmbiguous: CallTest | undefined
  /** True if any of these three is there. */
  readonly isListed: boolean
  /**
   * The time for which a caller over the limit stays refused; 0 if only the application blocks callers, undefined if the rule does
   * not block.
   */
  readonly blockMs: number | undefined
  /** The growth of blocks, from `blockMs` on; undefined if all last as long. */
  readonly blockGrowth?: BlockGrowth | undefined
  /** True if a block that the rule begins clears the count of its caller. */
  readonly blockClears: boolean
  /** True if callers may have credit beside the limit. */
  readonly credit?: boolean | undefined
  /** The limits that depend on the caller; undefined if all have the same. */
  readonly plans?: CompiledPlans<CompiledRule> | undefined
  /** The meters of all limits that the rule states, if the limit depends on the caller. */
  readonly limitMeters?: readonly Meter[] | undefined
  /** The source of the limit, if it depends on the caller: `plan pro`, `override`, `default`. */
  readonly limitFrom?: string | undefined
}

const DEFAULT_QUEUE_TIMEOUT_MS = 1000

/** A whole document, ready to decide calls. */
export interface CompiledDocument {
  readonly rules: readonly CompiledRule[]
  /** Tests for callers that pass uncounted, and for callers that never pass; undefined if none are listed. */
  readonly allows: ((call: Call) => boolean) | undefined
  readonly denies: ((call: Call) => boolean) | undefined
  /** The levels of calls; undefined if all have the same. */
  readonly priorities: Priorities | undefined
  /** Reads the caller by a dimension, for `overload.heaviestFirst`. */
  readonly callerOf: KeyReader | undefined
}

/** Throws if the document names keys that cannot be read. */
export function compileDocument(
  document: RuleDocument,
  algorithms: readonly Algorithm[],
  dimensions: readonly Dimension[],
  nowMs: () => number,
  maxWaitMs: number = Number.POSITIVE_INFINITY,
): CompiledDocument {
  const { identify, ipv6Prefix, jwt, allow, deny } = document
  const ready = dimensions.map(dimension => dimension.set?.({ ipv6Prefix, jwt, nowMs }) ?? dimension)
  const lookup = { identify, dimensions: ready }
  return {
    rules: document.rules
      .filter(rule => rule.enabled)
      .map(rule => compileRule(rule, document, algorithms, ready, maxWaitMs)),
    allows: allow && compileCallers(allow, lookup),
    denies: deny && compileDenied(deny, lookup),
    priorities: document.priority && compilePriorities(document.priority, lookup),
    callerOf: document.overload?.heaviestFirst ? compileKey([document.overload.heaviestFirst], lookup) : undefined,
  }
}

function compileRule(
  rule: Rule,
  document: RuleDocument,
  algorithms: readonly Algorithm[],
  dimensions: readonly Dimension[],
  maxWaitMs: number,
): CompiledRule {
  const algorithm = algorithms.find(candidate => candidate.name === rule.algorithm)!
  const waits = rule.whenFull === 'wait'
  const { timeoutMs } = rule.queue
  const waitOptions = waits ? { timeoutUs: timeoutMs === undefined ? undefined : timeoutMs * 1000 } : undefined
  const lookup = { identify: document.identify, dimensions, missing: rule.missing }
  const exempts = exemptionOf(rule, lookup)
  const denies = rule.deny && compileDenied(rule.deny, lookup)
  const { plans } = rule
  const isAmbiguous = compileAmbiguity(plans?.by === undefined ? rule.by : [...rule.by, plans.by], lookup)
  const counted = ({ limits, options }: CountedTerms) => {
    const bounded = (meter: Meter): Meter => withMaxWait(meter, maxWaitMs * 1000)
    const meters = limits.map(limit => bounded(checked(algorithm.meter(limit, options, waitOptions), rule)))
    return {
      limits,
      burst: typeof options.burst === 'number' ? options.burst : undefined,
      meters,
      partOf: (part: Part) => limits.map(limit => bounded(partMeter(algorithm, { limit, options }, part, waitOptions))),
      terms: [limits, options, waitOptions],
      mostAtOnce: Math.min(...meters.map((meter, level) => meter.rate?.most ?? limits[level]!.count)),
    }
  }
  const standard = counted({ limits: rule.limits, options: rule.options })
  const measured = typeof rule.cost === 'object' ? compileCosts(rule.cost) : undefined
  const settles = typeof rule.cost !== 'number' && !standard.meters.some(meter => meter.held !== undefined)
  const hold = settlementTerms(settles ? rule.cost : undefined)
  const compiled = {
    id: rule.id,
    match: rule.match,
    by: rule.by,
    algorithm: rule.algorithm,
    origin: rule.origin,
    key: compileKey(rule.by, lookup),
    keyParts: rule.by.map(name => [name, compilePart(name, lookup), fieldOf(name, lookup)] as const),
    ...standard,
    answer: answerOf(document.answer, rule.answer),
    enforced: rule.whenFull !== 'shadow',
    distributed: rule.count === 'distributed',
    whenStoreDown: rule.whenStoreDown,
    // permits that are held in advance were granted by one limit
    lease: plans === undefined && hold.holdMs === undefined ? rule.lease : ('off' as const),
    queueSize: waits ? rule.queue.size : 0,
    queueTimeoutMs: Math.min(timeoutMs ?? DEFAULT_QUEUE_TIMEOUT_MS, maxWaitMs),
    queuePerCaller: rule.queue.perCaller,
    cost: measured?.estimate ?? compileCost(rule.cost, dimensions),
    measured,
    costInput: rule.cost,
    settles,
    ...hold,
    estimates: measured?.estimate !== undefined,
    countWhen: rule.countWhen && compileCountWhen(rule.countWhen),
    resetWhen: rule.resetWhen && compileResetWhen(rule.resetWhen, compileOtherReadings(rule.match)),
    exempts,
    denies,
    isAmbiguous,
    isListed: exempts !== undefined || denies !== undefined || isAmbiguous !== undefined,
    ...blockOf(rule.block),
    credit: rule.credit ?? false,
  } satisfies CompiledRule
  if (plans === undefined) return compiled
  const withTerms = ({ limit, options }: Terms, limitFrom: string): CompiledRule => {
    return { ...compiled, ...counted({ limits: [limit], options }), limitFrom, limitMeters }
  }
  const limitMeters: Meter[] = [...standard.meters]
  const compiledPlans = compilePlans(rule, lookup, withTerms)
  for (const { meters } of compiledPlans?.values.values() ?? []) limitMeters.push(...meters)
  return { ...compiled, limitFrom: 'default', limitMeters, plans: compiledPlans }
}

interface CountedTerms {
  readonly limits: readonly Limit[]
  readonly options: Rule['options']
}

function blockOf(block: Rule['block']): Pick<CompiledRule, 'blockMs' | 'blockGrowth' | 'blockClears'> {
  if (typeof block === 'object') {
    const { clear, ...growth } = block
    return { blockMs: growth.firstMs, blockGrowth: growth, blockClears: clear }
  }
  return { blockMs: block === 'manual' ? 0 : block, blockGrowth: undefined, blockClears: false }
}

/** Compiles an answer; a body of the rule's own has a type of its own. */
function answerOf({ contentType, ...answer }: Answer, own: Partial<Answer> = {}): Answer {
  if (contentType === undefined || own.body !== undefined) return { ...answer, ...own }
  return { ...answer, contentType, ...own }
}

/** Checks a meter, since one of a custom algorithm may be wrong: without slots it cannot count. */
function checked(meter: Meter, { id, algorithm }: Rule): Meter {
  if (Number.isSafeInteger(meter.slots) && meter.slots > 0) return meter
  const message = `rule "${id}": a meter of ${algorithm} has ${meter.slots} slots; give it 1 or more`
  throw new DianaError('BAD_RULES', message)
}

/** Returns a meter with no more patience than this. What it counts stays as it is, so that processes of another patience count with it. */
function withMaxWait(meter: Meter, maxWaitUs: number): Meter {
  return meter.maxWaitUs > maxWaitUs ? Object.assign(meter, { maxWaitUs }) : meter
}

/** Callers that a rule allows; with `missing: skip`, also calls without a value for one of its dimensions. */
function exemptionOf(rule: Rule, lookup: KeyInput): ((call: Call) => boolean) | undefined {
  const isAllowed = rule.allow && compileCallers(rule.allow, lookup)
  if (rule.missing !== 'skip') return isAllowed
  const readers = rule.by.map(name => readerOf(name, lookup))
  const lacks = (call: Call) => readers.some(read => read(call) === undefined)
  return isAllowed ? call => isAllowed(call) || lacks(call) : lacks
}
