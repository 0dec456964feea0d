import type { Limiter } from 'diana-limiter'
import type { RouteReport, RouteTrouble, TrafficSample } from '../services/reports.ts'
import type { CallerSide } from './http-stats.ts'

/** The services behind a gateway. */
export interface ServiceReporter {
  routes(): readonly RouteReport[]
  traffic(): readonly TrafficSample[]
  troubles(): readonly RouteTrouble[]
}

/** Reports of the server that a limiter works for. */
export interface ServerReporter {
  callerSide(): CallerSide
  /** Left out by a server that forwards no calls. */
  readonly services?: ServiceReporter | undefined
}

const reporters = new WeakMap<Limiter, ServerReporter>()

/** Lets the admin API find the server that a limiter works for. */
export function reportServer(limiter: Limiter, reporter: ServerReporter): void {
  reporters.set(limiter, reporter)
}

/** Returns the reporter of a limiter; undefined if it works for no server of this package. */
export function reporterOf(limiter: Limiter): ServerReporter | undefined {
  return reporters.get(limiter)
}

/** Returns how the addresses of all routes are doing; none if the limiter works for no gateway. */
export function readUpstreams(limiter: Limiter): readonly RouteReport[] {
  return reporters.get(limiter)?.services?.routes() ?? []
}
