import type { Call } from '../call.ts'
import { describeKey } from '../dimensions/describe-key.ts'
import type { Engine } from '../engine/engine.ts'
import { type CallerQuery, CallerSketches, type CallerUsage } from '../stats/callers/caller-usage.ts'
import { Timeline } from '../stats/callers/timeline.ts'
import { Refusals, type RefusedCall } from '../stats/refusals.ts'
import type { Verdict } from '../verdict.ts'

/** Which callers are wanted; a plain value. */
export interface CallerSearch extends Omit<CallerQuery, 'wants'> {
  /** In a value of the caller's key. */
  readonly search?: string | undefined
}

/** Which refusals are wanted; a plain value. */
export interface RefusalSearch {
  readonly count: number
  readonly rule?: string | undefined
  /** In a value of the caller's key, or in the path. */
  readonly search?: string | undefined
}

/** So many calls a second are read; of more, a sample, so that deciding stays as fast. */
const readPerSecond = 1000
const longestPath = 256
const shownMs = Timeline.steps * Timeline.stepMs

/** Who calls and who is refused, from now on: each rule's callers, and the last refusals. */
export class TrafficWatch {
  readonly #engine: Engine
  readonly #now: () => number
  readonly #callers = new CallerSketches()
  readonly #refusals = new Refusals()
  readonly #stop: () => void
  /** Calls until the next one is read. */
  #skip = 1
  #oneOf = 1
  #second = 0
  #read = 0
  /** The coarsest sample of those whose counts may still be shown. */
  #coarsest = { oneOf: 1, until: 0 }

  constructor(engine: Engine, now: () => number = Date.now) {
    this.#engine = engine
    this.#now = now
    this.#stop = engine.observers.observe({
      onCall: call => {
        if (--this.#skip === 0) this.#readCall(call)
      },
      onRefusal: ({ rule, by, key }) => this.#callers.addRefusal(rule, by, key, this.#now()),
      onVerdict: (verdict, call) => {
        if (!verdict.allowed) this.#keep(verdict, call)
      },
    })
  }

  callers({ search, ...query }: CallerSearch): CallerUsage[] {
    this.#callers.retain(this.#ruleIds())
    const wants = search === undefined ? undefined : (key: string, by: readonly string[]) => isFound(search, key, by)
    const now = this.#now()
    return this.#callers.read({ ...query, wants }, now, this.#coarsest.until > now ? this.#coarsest.oneOf : 1)
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
    this.#pace(at)
    const example = { method: call.method, path: cut(call.path), ip: call.ip }
    for (const { rule } of this.#engine.decider.meets(call)) {
      // a trial counts the same callers as its rule
      if (rule.origin !== 'trial') this.#callers.addCall(rule.id, rule.by, rule.key(call), at, this.#oneOf, example)
    }
    // a random distance, so that calls in a rhythm are not read always or never
    this.#skip = this.#oneOf === 1 ? 1 : 1 + Math.floor(Math.random() * (2 * this.#oneOf - 1))
  }

  /** Reads one call in 2, 4, 8 … of the calls of the second before were more than can be read. */
  #pace(at: number): void {
    const second = Math.floor(at / 1000)
    if (second !== this.#second) {
      const calls = second === this.#second + 1 ? this.#read * this.#oneOf : 0
      this.#oneOf = 2 ** Math.max(0, Math.ceil(Math.log2(calls / readPerSecond)))
      this.#second = second
      this.#read = 0
    } else if (this.#read >= 2 * readPerSecond) {
      // a flood that has just begun
      this.#oneOf *= 2
      this.#read = readPerSecond
    }
    this.#read++
    if (this.#oneOf > 1 && (this.#oneOf >= this.#coarsest.oneOf || this.#coarsest.until < at)) {
      this.#coarsest = { oneOf: this.#oneOf, until: at + shownMs }
    }
  }

  #keep(verdict: Verdict, call: Call): void {
    const id = verdict.rule ?? ''
    this.#refusals.add(id, this.#now(), () => {
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
    })
  }
}

function isFound(search: string, key: string, by: readonly string[]): boolean {
  const wanted = search.toLowerCase()
  return Object.values(describeKey(key, by)).some(({ value }) => value.toLowerCase().includes(wanted))
}

/** A copy, since a piece of a long text keeps all of it in memory. */
function cut(text: string): string {
  return text.length > longestPath ? Buffer.from(text.slice(0, longestPath), 'utf16le').toString('utf16le') : text
}
