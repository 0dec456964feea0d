import type { Algorithm, Limit, Meter, Part } from '../algorithms/algorithm.ts'
import { partMeter } from '../algorithms/part.ts'
import type { Call } from '../call.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { compileKey, compilePart, fieldOf, type KeyInput, type KeyReader, readerOf } from '../dimensions/key.ts'
import { type CallTest, compileAmbiguity } from '../dimensions/reading/ambiguity.ts'
import { DianaError } from '../errors.ts'
import { compileCallers, compileDenied } from './match/callers.ts'
import { type CallOutcome, compileCountWhen } from './match/count-when.ts'
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
  /** Counted for the whole fleet. */
  readonly distributed: boolean
  /** What the rule does while the store is down. */
  readonly whenStoreDown: WhenStoreDown
  /** Whether processes hold permits of it in advance. */
  readonly lease: 'auto' | 'off'
  /** How many calls of this rule may wait in this process, and how long for a concurrency slot. */
  readonly queueSize: number
  readonly queueTimeoutMs: number
  /** The cost of a call by this rule; undefined if the caller of `check` gives it. */
  readonly cost: ((call: Call) => number) | undefined
  /** Where that cost is from. */
  readonly costInput: CostInput | undefined
  /** Whether the cost of a call may be settled afterwards. */
  readonly settles: boolean
  /** The cost that it reads is an estimate, which is never more than the rule can hold. */
  readonly estimates: boolean
  /** The most that it can ever admit at once. */
  readonly mostAtOnce: number
  /** Whether a call with this outcome counts; undefined if every call does. */
  readonly countWhen: ((outcome: CallOutcome) => boolean) | undefined
  /** Calls that match but are exempt; undefined if there are none. */
  readonly exempts: ((call: Call) => boolean) | undefined
  /** Calls that it refuses regardless of counts; undefined if there are none. */
  readonly denies: ((call: Call) => boolean) | undefined
  /** Calls whose key depends on how a service reads them, which it refuses, too; undefined if there are none. */
  readonly isAmbiguous: CallTest | undefined
  /** Whether any of these three is there. */
  readonly isListed: boolean
  /** How long a caller over the limit stays refused; 0 if only the application blocks callers, undefined if the rule does not block. */
  readonly blockMs: number | undefined
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
): CompiledDocument {
  const { identify, ipv6Prefix, jwt, allow, deny } = document
  const ready = dimensions.map(dimension => dimension.set?.({ ipv6Prefix, jwt, nowMs }) ?? dimension)
  const lookup = { identify, dimensions: ready }
  return {
    rules: document.rules.filter(rule => rule.enabled).map(rule => compileRule(rule, document, algorithms, ready)),
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
): CompiledRule {
  const algorithm = algorithms.find(candidate => candidate.name === rule.algorithm)!
  const waits = rule.whenFull === 'wait'
  const { timeoutMs } = rule.queue
  const waitOptions = waits ? { timeoutUs: timeoutMs === undefined ? undefined : timeoutMs * 1000 } : undefined
  const lookup = { identify: document.identify, dimensions, missing: rule.missing }
  const exempts = exemptionOf(rule, lookup)
  const denies = rule.deny && compileDenied(rule.deny, lookup)
  const isAmbiguous = compileAmbiguity(rule.by, lookup)
  const meters = rule.limits.map(limit => checked(algorithm.meter(limit, rule.options, waitOptions), rule))
  const settles = typeof rule.cost !== 'number' && !meters.some(meter => meter.needsRelease)
  return {
    id: rule.id,
    match: rule.match,
    by: rule.by,
    algorithm: rule.algorithm,
    origin: rule.origin,
    key: compileKey(rule.by, lookup),
    keyParts: rule.by.map(name => [name, compilePart(name, lookup), fieldOf(name, lookup)] as const),
    limits: rule.limits,
    burst: typeof rule.options.burst === 'number' ? rule.options.burst : undefined,
    meters,
    partOf: part => rule.limits.map(limit => partMeter(algorithm, { limit, options: rule.options }, part, waitOptions)),
    terms: [rule.limits, rule.options, waitOptions],
    answer: answerOf(document.answer, rule.answer),
    enforced: rule.whenFull !== 'shadow',
    distributed: rule.count === 'distributed',
    whenStoreDown: rule.whenStoreDown,
    lease: settles && settlementTerms(rule.cost).holdMs !== undefined ? 'off' : rule.lease,
    queueSize: waits ? rule.queue.size : 0,
    queueTimeoutMs: timeoutMs ?? DEFAULT_QUEUE_TIMEOUT_MS,
    cost: compileCost(rule.cost, dimensions),
    costInput: rule.cost,
    settles,
    ...(settles ? settlementTerms(rule.cost) : settlementTerms(undefined)),
    estimates: false,
    mostAtOnce: Math.min(...meters.map((meter, level) => meter.most ?? rule.limits[level]!.count)),
    countWhen: rule.countWhen && compileCountWhen(rule.countWhen),
    exempts,
    denies,
    isAmbiguous,
    isListed: exempts !== undefined || denies !== undefined || isAmbiguous !== undefined,
    blockMs: rule.block === 'manual' ? 0 : rule.block,
  }
}

/** A body of the rule's own has a type of its own. */
function answerOf({ contentType, ...answer }: Answer, own: Partial<Answer> = {}): Answer {
  if (contentType === undefined || own.body !== undefined) return { ...answer, ...own }
  return { ...answer, contentType, ...own }
}

/** A meter of a custom algorithm may be wrong: without slots it cannot count. */
function checked(meter: Meter, { id, algorithm }: Rule): Meter {
  if (Number.isSafeInteger(meter.slots) && meter.slots > 0) return meter
  const message = `rule "${id}": a meter of ${algorithm} has ${meter.slots} slots; give it 1 or more`
  throw new DianaError('BAD_RULES', message)
}

/** Callers that a rule allows; with `missing: skip`, also calls without a value for one of its dimensions. */
function exemptionOf(rule: Rule, lookup: KeyInput): ((call: Call) => boolean) | undefined {
  const isAllowed = rule.allow && compileCallers(rule.allow, lookup)
  if (rule.missing !== 'skip') return isAllowed
  const readers = rule.by.map(name => readerOf(name, lookup))
  const lacks = (call: Call) => readers.some(read => read(call) === undefined)
  return isAllowed ? call => isAllowed(call) || lacks(call) : lacks
}
