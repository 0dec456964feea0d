import type { Call } from '../call.ts'
import { busiestEstimate } from '../decision/explain.ts'
import type { RuleState } from '../decision/rule-state.ts'
import type { Counters } from '../stats/counters.ts'
import { Durations } from '../stats/durations.ts'
import type { Observer } from '../stats/observer.ts'
import { CallRecorder, type RecordedCall } from '../stats/recorder.ts'
import type { Stats } from '../stats/stats.ts'
import type { StoreStats } from '../stores/failover/store-health.ts'
import type { FleetCounter } from '../stores/store.ts'
import type { Verdict } from '../verdict.ts'

/** The numbers that are asked of the stores which are shared with other processes. */
export interface SharedStats {
  readonly fleetStats: StoreStats | undefined
  leasedOf(counter: FleetCounter): number | undefined
}

/** Times and records calls, and reports them to observers. */
export class Observers {
  readonly #counters: Counters
  readonly #nowMs: () => number
  readonly #durations = { memory: new Durations(), redis: new Durations() }
  #recorder: CallRecorder | undefined

  constructor(counters: Counters, nowMs: () => number) {
    this.#counters = counters
    this.#nowMs = nowMs
  }

  stats(rules: readonly RuleState[], shared: SharedStats): Stats {
    const { memory, redis } = this.#durations
    const store = shared.fleetStats
    return {
      total: this.#counters.total.read(),
      unjudged: { ...this.#counters.unjudged },
      rules: rules.map(state => {
        const { rule, waiting, tally, counter } = state
        const leased = counter && shared.leasedOf(counter)
        const estimate = busiestEstimate(state, this.#nowMs() * 1000)
        return {
          id: rule.id,
          waiting,
          ...(leased === undefined ? {} : { leased }),
          ...(estimate === undefined ? {} : { estimate }),
          ...(state.tally.settled === undefined ? {} : { settled: state.tally.settled }),
          ...(tally.amounts === undefined ? {} : { amounts: tally.amounts.read() }),
          ...tally.read(),
        }
      }),
      durations: { memory: memory.read(), redis: redis.read() },
      ...(store ? { store } : {}),
    }
  }

  takeLoads(rules: readonly RuleState[]): Map<string, number> {
    this.#counters.tracksLoads = true
    const loads = new Map<string, number>()
    for (const { rule, tally } of rules) {
      const load = tally.takeLoad(rule.meters)
      if (load !== undefined) loads.set(rule.id, load)
    }
    return loads
  }

  observe(observer: Observer): () => void {
    this.#counters.observers = [...this.#counters.observers, observer]
    return () => {
      this.#counters.observers = this.#counters.observers.filter(one => one !== observer)
    }
  }

  record(rules: readonly RuleState[], maxCalls?: number): void {
    if (this.#recorder) return
    const recorder = new CallRecorder({ now: this.#nowMs, ...(maxCalls === undefined ? {} : { most: maxCalls }) })
    this.#recorder = recorder
    this.follow(rules)
    this.observe({ onCall: (call, cost) => recorder.add(call, cost) })
  }

  recentCalls(lastMs: number): RecordedCall[] {
    return this.#recorder?.since(this.#nowMs() - lastMs) ?? []
  }

  /** Follows a change of the rules, and with them of what is recorded of a call. */
  follow(rules: readonly RuleState[]): void {
    this.#recorder?.use(rules.map(({ rule }) => rule))
  }

  time(store: 'memory' | 'redis', startedMs: number): void {
    const seconds = (performance.now() - startedMs) / 1000
    this.#durations[store].add(seconds)
    for (const observer of this.#counters.observers) observer.onTimed?.(seconds, store)
  }

  report(verdict: Verdict, call: Call): Verdict {
    for (const observer of this.#counters.observers) observer.onVerdict?.(verdict, call)
    return verdict
  }
}
