import type { Call, Limiter } from 'diana-limiter'
import {
  adminOf,
  type CallerSearch,
  type CallerUsage,
  type Estimate,
  type RecordedCall,
  type RefusalSearch,
  type RefusedCall,
  type Stats,
} from 'diana-limiter/admin'
import { mergeReports, type RouteReport } from '../services/reports.ts'
import { readUpstreams } from '../telemetry/server-reports.ts'
import type { ProcessState } from './merge-states.ts'
import { type ProcessReport, ProcessReporter } from './services/process-report.ts'

/** The processes that judge calls, seen as one: this one, or the workers of a supervisor. */
export interface Processes {
  readonly count: number
  figures(): Stats | Promise<Stats>
  /**
   * Returns what each of them said of itself when the figures were read; empty if the limiter that is asked about everything else
   * decides the calls, too.
   */
  states(): readonly ProcessState[]
  /** Returns how full the fullest key of each rule was since this was last asked. */
  takeLoads(): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>
  /** Returns who calls, and who was refused most. */
  callers(search: CallerSearch): readonly CallerUsage[] | Promise<readonly CallerUsage[]>
  /** Returns a sample of the last refused calls, the newest first. */
  refusals(search: RefusalSearch): readonly RefusedCall[] | Promise<readonly RefusedCall[]>
  /** Returns the calls of the last minutes, oldest first, as far as they were recorded. */
  recentCalls(): readonly RecordedCall[] | Promise<readonly RecordedCall[]>
  /** Returns the permits of a call's keys that they hold in advance, by rule; rules without such permits are left out. */
  leasedFor(call: Call): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>
  /** Returns what adaptive rules have found for a call's keys, by rule; of processes that are not asked about everything else. */
  estimatesFor(call: Call): ReadonlyMap<string, Estimate> | Promise<ReadonlyMap<string, Estimate>>
  /** Returns what each of them says of itself; asked once a second. */
  reports(): readonly ProcessReport[] | Promise<readonly ProcessReport[]>
  /** Returns how the addresses of services are doing. */
  upstreams(): readonly RouteReport[] | Promise<readonly RouteReport[]>
  close(): void
}

/** Returns a limiter of this process; who calls and who is refused is remembered from now on. */
export function watchLimiter(limiter: Limiter): Processes {
  adminOf(limiter).record()
  const traffic = adminOf(limiter).watchTraffic()
  const reporter = new ProcessReporter(limiter)
  return {
    count: 1,
    figures: () => adminOf(limiter).stats(),
    states: () => [],
    takeLoads: () => adminOf(limiter).takeLoads(),
    callers: search => traffic.callers(search),
    refusals: search => traffic.refusals(search),
    recentCalls: () => adminOf(limiter).recentCalls(),
    leasedFor: call => adminOf(limiter).leasedFor(call),
    estimatesFor: () => new Map(),
    reports: () => [reporter.read()],
    upstreams: () => mergeReports([readUpstreams(limiter)]),
    close: () => {
      traffic.stop()
      reporter.close()
    },
  }
}
