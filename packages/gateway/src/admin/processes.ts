import type { Call, Limiter } from 'diana-limiter'
import { adminOf, type RecordedCall, type Stats, type TopCaller, TopCallers } from 'diana-limiter/admin'
import { type RouteReport, readUpstreams } from '../upstreams/reports.ts'

/** The processes that judge calls, seen as one: this one, or the workers of a supervisor. */
export interface Processes {
  readonly count: number
  figures(): Stats | Promise<Stats>
  /** How full the fullest key of each rule was since this was last asked. */
  takeLoads(): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>
  /** Who was refused most. */
  callers(count: number, rule?: string): readonly TopCaller[] | Promise<readonly TopCaller[]>
  /** The calls of the last minutes, oldest first, as far as they were recorded. */
  recentCalls(): readonly RecordedCall[] | Promise<readonly RecordedCall[]>
  /** The permits of a call's keys that they hold in advance, by rule; without the rules of which they hold none. */
  leasedFor(call: Call): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>
  /** How the addresses of services are doing. */
  upstreams(): readonly RouteReport[] | Promise<readonly RouteReport[]>
  close(): void
}

/** A limiter of this process; who calls and who is refused is remembered from now on. */
export function watchLimiter(limiter: Limiter): Processes {
  const callers = new TopCallers()
  adminOf(limiter).record()
  const stop = adminOf(limiter).observe({ onRefusal: ({ rule, by, key }) => callers.add(rule, by, key, Date.now()) })
  return {
    count: 1,
    figures: () => adminOf(limiter).stats(),
    takeLoads: () => adminOf(limiter).takeLoads(),
    callers: (count, rule) => callers.top(count, rule),
    recentCalls: () => adminOf(limiter).recentCalls(),
    leasedFor: call => adminOf(limiter).leasedFor(call),
    upstreams: () => readUpstreams(limiter),
    close: stop,
  }
}
