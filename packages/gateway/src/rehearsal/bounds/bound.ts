import type { RuleDocument } from 'diana-limiter'
import { createReplayLimiter, type Extensions } from 'diana-limiter/gateway'
import { type Finding, findingsOf } from './findings.ts'
import { type Amounts, amounts, BoundedRule, INTERVALS, type Interval, intervals } from './rule-bounds.ts'
import { type CallClass, classesOf } from './sample-calls.ts'
import type { Burst } from './schedule.ts'
import { type OpenClass, WholeSet } from './whole-set.ts'

/** A schedule of calls that the limits let pass. */
export interface Reached {
  readonly calls: number
  /** The beginning of the interval, as a date. */
  readonly begins: string
  /** The first of them, in microseconds from the beginning of the interval. */
  readonly bursts: readonly Burst[]
}

export type Schedules = Readonly<Partial<Record<Interval, Reached>>>

export interface RuleBound {
  readonly rule: string
  /** The amounts of one key; those of all keys together follow. Null means no bound. */
  readonly oneCaller: Amounts
  readonly allCallers: Amounts
  readonly unbounded?: string | undefined
  readonly freeKeys: readonly { readonly dimension: string; readonly why: string }[]
  readonly notes: readonly string[]
  readonly schedules: Schedules
}

/** The most that rules let pass, and what is odd about them. */
export interface BoundReport {
  readonly rules: readonly RuleBound[]
  readonly together: {
    readonly oneCaller: Amounts
    readonly allCallers: Amounts
    /** Calls that nothing bounds, and why. */
    readonly open: { readonly oneCaller: readonly OpenClass[]; readonly allCallers: readonly OpenClass[] }
    readonly schedules: { readonly oneCaller: Schedules; readonly allCallers: Schedules }
  }
  readonly findings: readonly Finding[]
}

export interface BoundOptions {
  readonly extensions?: Partial<Extensions> | undefined
  /** Milliseconds since 1970, from which calendars are looked up; default: now. */
  readonly nowMs?: number | undefined
}

/** More rules are only compared, without schedules. */
const MOST_SCHEDULED = 100

/** Computes what rules let pass in any second, minute, hour and day. */
export async function boundOf(document: RuleDocument, options: BoundOptions = {}): Promise<BoundReport> {
  const nowMs = options.nowMs ?? Date.now()
  const { rules, classes, messages } = await compileBounds(document, { ...options, nowMs })
  const nowUs = Math.floor(nowMs) * 1000
  const ofCaller = new WholeSet(classes, rules, 'caller', nowUs)
  const ofAll = new WholeSet(classes, rules, 'all', nowUs)
  const isSmall = rules.length <= MOST_SCHEDULED
  return {
    rules: rules.map(one => ruleBoundOf(one, isSmall)),
    together: {
      oneCaller: amounts(us => ofCaller.most(us)),
      allCallers: amounts(us => ofAll.most(us)),
      open: { oneCaller: ofCaller.open, allCallers: ofAll.open },
      schedules: { oneCaller: schedulesOf(ofCaller, isSmall), allCallers: schedulesOf(ofAll, isSmall) },
    },
    findings: findingsOf(document, rules, [...classes, ...messages]),
  }
}

/** Returns what is odd about rules, without the numbers. */
export async function oddities(document: RuleDocument, options: BoundOptions = {}): Promise<readonly Finding[]> {
  const { rules, classes, messages } = await compileBounds(document, options)
  return findingsOf(document, rules, [...classes, ...messages])
}

async function compileBounds(
  document: RuleDocument,
  { nowMs = Date.now(), extensions }: BoundOptions,
): Promise<{
  readonly rules: readonly BoundedRule[]
  readonly classes: readonly CallClass[]
  readonly messages: readonly CallClass[]
}> {
  const nowUs = Math.floor(nowMs) * 1000
  const replay = await createReplayLimiter(document, { extensions, clock: () => nowUs / 1000 })
  try {
    const compiled = new Map(replay.rules.map(rule => [rule.id, rule]))
    const rules = document.rules.flatMap(rule => {
      const one = compiled.get(rule.id)
      return one === undefined ? [] : [new BoundedRule(rule, one, document, nowUs)]
    })
    return { rules, classes: classesOf(document, replay), messages: classesOf(document, replay, true) }
  } finally {
    await replay.limiter.close()
  }
}

/** Finds schedules for all intervals, or none. */
function schedulesOf(one: BoundedRule | WholeSet, isWanted: boolean): Schedules {
  const schedules: Partial<Record<Interval, Reached>> = {}
  for (const interval of isWanted ? intervals : []) {
    const found = one.schedule(INTERVALS[interval])
    if (found === undefined) continue
    schedules[interval] = { calls: found.reached, begins: momentOf(found.startUs), bursts: found.bursts.slice(0, 100) }
  }
  return schedules
}

function ruleBoundOf(one: BoundedRule, withSchedules: boolean): RuleBound {
  return {
    rule: one.rule.id,
    oneCaller: amounts(us => one.most(us)),
    allCallers: amounts(us => one.mostOfAll(us)),
    ...(one.unbounded !== undefined && { unbounded: one.unbounded }),
    freeKeys: one.free,
    notes: one.notes,
    schedules: schedulesOf(one, withSchedules),
  }
}

/** Writes a moment to the microsecond. */
function momentOf(us: number): string {
  const text = new Date(Math.floor(us / 1000)).toISOString()
  return us % 1000 === 0 ? text : text.replace('Z', `${String(us % 1000).padStart(3, '0')}Z`)
}
