import { type IntervalHistogram, monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import type { Limiter } from 'diana-limiter'
import type { RouteTrouble, TrafficSample } from '../../services/reports.ts'
import type { CallerSide } from '../../telemetry/http-stats.ts'
import { reporterOf } from '../../telemetry/server-reports.ts'

/** The load of a process. */
export interface ProcessLoad {
  /** The part of the time in which the event loop did not wait, since the last report. */
  readonly utilization: number
  /** The delay of timers by the event loop: half of them, and 99 of 100, ran no later than this, in about ten seconds. */
  readonly delay: { readonly p50Ms: number; readonly p99Ms: number }
  /** Processor time per time since the last report: 1 is one processor in full use. */
  readonly cpu: number
  readonly rssBytes: number
  readonly heapUsedBytes: number
  readonly heapLimitBytes: number
}

/** The report that a process makes once a second, as plain values. */
export interface ProcessReport {
  readonly pid: number
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly load: ProcessLoad
  /** Left out by a process that serves no calls itself. */
  readonly callers?: CallerSide | undefined
  /** Left out by a process that forwards no calls. */
  readonly services?:
    | { readonly traffic: readonly TrafficSample[]; readonly troubles: readonly RouteTrouble[] }
    | undefined
}

const resolutionMs = 10
const windowMs = 10_000

/** Measures this process from report to report. */
export class ProcessReporter {
  readonly #limiter: Limiter
  readonly #delays: IntervalHistogram
  #delay: ProcessLoad['delay'] | undefined
  #windowAt = performance.now()
  #readAt = performance.now()
  #utilization = performance.eventLoopUtilization()
  #cpu = process.cpuUsage()

  constructor(limiter: Limiter) {
    this.#limiter = limiter
    this.#delays = monitorEventLoopDelay({ resolution: resolutionMs })
    this.#delays.enable()
  }

  read(): ProcessReport {
    const reporter = reporterOf(this.#limiter)
    const services = reporter?.services
    return {
      pid: process.pid,
      startedAt: Math.round(performance.timeOrigin),
      load: this.#load(performance.now()),
      ...(reporter && { callers: reporter.callerSide() }),
      ...(services && { services: { traffic: services.traffic(), troubles: services.troubles() } }),
    }
  }

  close(): void {
    this.#delays.disable()
  }

  #load(now: number): ProcessLoad {
    const loop = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(loop, this.#utilization)
    this.#utilization = loop
    const { user, system } = process.cpuUsage(this.#cpu)
    const cpu = (user + system) / 1000 / Math.max(1, now - this.#readAt)
    this.#cpu = process.cpuUsage()
    this.#readAt = now
    const { rss, heapUsed } = process.memoryUsage()
    const heapLimitBytes = getHeapStatistics().heap_size_limit
    return { utilization, delay: this.#readDelay(now), cpu, rssBytes: rss, heapUsedBytes: heapUsed, heapLimitBytes }
  }

  /** Returns the last whole window; the one that runs until there is one. */
  #readDelay(now: number): ProcessLoad['delay'] {
    if (now - this.#windowAt < windowMs) return this.#delay ?? this.#quantiles()
    this.#delay = this.#quantiles()
    this.#delays.reset()
    this.#windowAt = now
    return this.#delay
  }

  #quantiles(): ProcessLoad['delay'] {
    // Node counts the time between two timers, which includes the time that they wait on purpose
    const late = (percentile: number): number =>
      this.#delays.count === 0 ? 0 : Math.max(0, this.#delays.percentile(percentile) / 1e6 - resolutionMs)
    return { p50Ms: late(50), p99Ms: late(99) }
  }
}
