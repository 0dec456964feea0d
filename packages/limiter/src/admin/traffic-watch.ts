import type { Call } from '../call.ts'
import { describeKey } from '../dimensions/describe-key.ts'
import type { Engine } from '../engine/engine.ts'
import { type CallerQuery, CallerSketches, type CallerUsage, Timeline } from '../stats/callers/caller-usage.ts'
import { Sampler } from '../stats/callers/sampler.ts'
import type { RefusedCaller } from '../stats/observer.ts'
import { Refusals, type RefusedCall } from '../stats/refusals.ts'
import type { Verdict } from '../verdict.ts'

/** The callers that are wanted; a plain value. */
export interface CallerSearch extends Omit<CallerQuery, 'wants'> {
  /** In a value of the caller's key. */
  readonly search?: string | undefined
}

/** The refusals that are wanted; a plain value. */
export interface RefusalSearch {
  readonly count: number
  readonly rule?: string | undefined
  /** In a value of the caller's key, or in the path. */
  readonly search?: string | undefined
}

/** The calls and the refusals that are read in a second; of more, a sample, so that deciding stays as fast. */
const readPerSecond = 1000
const longestPath = 256
const shownMs = Timeline.steps * Timeline.stepMs

/** Watches who calls and who is refused, from now on: each rule's callers, and the last refusals. */
export class TrafficWatch {
  readonly #engine: Engine
  readonly #now: () => number
  readonly #callers = new CallerSketches()
  readonly #refusals = new Refusals()
  readonly #stop: () => void
  readonly #callSampler = new Sampler(readPerSecond, shownMs)
  readonly #refusalSampler = new Sampler(readPerSecond, shownMs)

  /** @internal */
  constructor(engine: Engine, now: () => number = Date.now) {
    this.#engine = engine
    this.#now = now
    this.#stop = engine.observers.observe({
      onCall: call => {
        if (this.#callSampler.isNext()) this.#readCall(call)
      },
      onRefusal: refusal => {
        if (this.#refusalSampler.isNext()) this.#readRefusal(refusal)
      },
      onVerdict: (verdict, call) => {
        if (!verdict.allowed) this.#keep(verdict, call)
      },
    })
  }

  callers({ search, ...query }: CallerSearch): CallerUsage[] {
    this.#callers.retain(this.#ruleIds())
    const wants = search === undefined ? undefined : (key: string, by: readonly string[]) => isFound(search, key, by)
    const now = this.#now()
    const oneOf = { calls: this.#callSampler.coarsest(now), refusals: this.#refusalSampler.coarsest(now) }
    return this.#callers.read({ ...query, wants }, now, oneOf)
  }

  refusals({ count, rule, search }: RefusalSearch): RefusedCall[] {
    this.#refusals.retain(this.#ruleIds())
    return this.#refusals.read(count, refusal => {
      if (rule !== undefined && refusal.rule !== rule) return false
      if (search === undefined) return true
      return refusal.path.toLowerCase().includes(search.toLowerCase()) || isFound(search, refusal.key, refusal.by)
    })
  }

  stop(): void {
    this.#stop()
  }

  #ruleIds(): ReadonlySet<string> {
    return new Set(this.#engine.decider.rules.map(({ rule }) => rule.id))
  }

  #readCall(call: Call): void {
    const at = this.#now()
    const weight = this.#callSampler.weigh(at)
    const example = { method: call.method, path: cut(call.path), ip: call.ip }
    for (const { rule } of this.#engine.decider.meets(call)) {
      // a trial counts the same callers as its rule
      if (rule.origin !== 'trial') this.#callers.addCall(rule.id, rule.by, rule.key(call), at, weight, example)
    }
  }

  #readRefusal({ rule, by, key }: RefusedCaller): void {
    const at = this.#now()
    this.#callers.addRefusal(rule, by, key, at, this.#refusalSampler.weigh(at))
  }

  #keep(verdict: Verdict, call: Call): void {
    const id = verdict.rule ?? ''
    const at = this.#now()
    if (this.#refusals.takes(id, at)) this.#refusals.keep(id, at, this.#describe(verdict, call))
  }

  #describe(verdict: Verdict, call: Call): Omit<RefusedCall, 'at' | 'rule' | 'unsaid'> {
    const id = verdict.rule ?? ''
    const state = this.#engine.decider.rules.find(({ rule }) => rule.id === id)
    const decision = verdict.decisions.find(one => one.rule === id && !one.allowed)
    const { limit, periodMs, remaining } = decision ?? {}
    const retryAfterMs = Number.isFinite(verdict.retryAfterMs) ? verdict.retryAfterMs : null
    return {
      by: state?.rule.by ?? [],
      key: state?.rule.key(call) ?? '',
      reason: verdict.reason ?? 'limit',
      ...{ method: cut(call.method), path: cut(call.path), ip: call.ip },
      ...(decision && { limit, periodMs, remaining }),
      retryAfterMs,
    }
  }
}

function isFound(search: string, key: string, by: readonly string[]): boolean {
  const wanted = search.toLowerCase()
  return Object.values(describeKey(key, by)).some(({ value }) => value.toLowerCase().includes(wanted))
}

/** Copies a text, since a piece of a long text keeps all of it in memory. */
function cut(text: string): string {
  return text.length > longestPath ? Buffer.from(text.slice(0, longestPath), 'utf16le').toString('utf16le') : text
}
