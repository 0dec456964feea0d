import type { IntervalHistogram } from 'node:perf_hooks'
import type { OverloadSettings } from '../rules/rule.ts'

const RESOLUTION_MS = 5

/** The load of this process in an interval. */
export interface Load {
  /** Nine of ten delays of the event loop were no longer. */
  readonly delayMs: number
  /** The part of the time in which the event loop did not wait. */
  readonly utilization: number
  /** The time that calls waited for others of the same turn of the event loop, on average. */
  readonly waitMs: number
}

/** Measures the event loop of this process from interval to interval. */
export class LoadSignal {
  readonly #delays: IntervalHistogram
  #utilization = performance.eventLoopUtilization()
  #turnAt = 0
  #waitedUs = 0
  #calls = 0

  constructor() {
    // not imported: runtimes without this module can do without `overload`
    const { monitorEventLoopDelay } = process.getBuiltinModule('node:perf_hooks')
    this.#delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
    this.#delays.enable()
  }

  /** Notes a call that is handled; those that came with it in one turn of the event loop have waited for each other. */
  note(nowUs: number): void {
    if (this.#turnAt === 0) {
      this.#turnAt = nowUs
      setImmediate(this.#endTurn)
    }
    this.#waitedUs += nowUs - this.#turnAt
    this.#calls++
  }

  readonly #endTurn = (): void => {
    this.#turnAt = 0
  }

  /** Returns the load since it was last read. */
  read(): Load {
    const since = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(since, this.#utilization)
    this.#utilization = since
    const delayMs = this.#delays.count === 0 ? 0 : Math.max(0, this.#delays.percentile(90) / 1e6 - RESOLUTION_MS)
    this.#delays.reset()
    const waitMs = this.#calls === 0 ? 0 : this.#waitedUs / this.#calls / 1000
    this.#waitedUs = 0
    this.#calls = 0
    return { delayMs, utilization, waitMs }
  }

  close(): void {
    this.#delays.disable()
  }
}

/** Returns the load as one number: 1 at the first threshold that is reached. */
export function loadOf({ delayMs, utilization, waitMs }: Load, settings: OverloadSettings): number {
  const { eventLoopDelayMs, eventLoopUtilization, callWaitMs } = settings
  const busy =
    utilization > eventLoopUtilization ? 1 + (utilization - eventLoopUtilization) / (1.001 - eventLoopUtilization) : 0
  return Math.max(delayMs / eventLoopDelayMs, waitMs / callWaitMs, busy)
}
