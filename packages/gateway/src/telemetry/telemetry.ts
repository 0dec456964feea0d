import { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { faultCounts } from 'diana-limiter/gateway'
import { verdictOf } from 'diana-limiter/http'
import type { Route } from '../services/routes/route.ts'
import type { Upstream } from '../services/upstream.ts'
import type { AccessLogSettings } from '../settings/access-log-settings.ts'
import type { TracingSettings } from '../settings/tracing-settings.ts'
import { CallRecord, recordOf } from './call-record.ts'
import {
  type CallerSide,
  type HttpStats,
  mergeHttpStats,
  type RouteStats,
  TrafficCounts,
  type UpstreamState,
  type UpstreamStats,
} from './http-stats.ts'
import { createRequestId, isRequestId } from './ids.ts'
import { AccessLog, type AccessLogOptions } from './logging/access-log.ts'
import { Tracing } from './tracing/tracing.ts'

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

export interface TelemetryOptions {
  readonly settings: {
    readonly accessLog?: AccessLogSettings | undefined
    readonly tracing?: TracingSettings | undefined
  }
  /** The folder that relative paths in the rule file begin in. */
  readonly folder: string
  /** The caller's address as rules count it. */
  readonly addressOf: (record: CallRecord) => string | undefined
  readonly replayOf?: AccessLogOptions['replayOf']
  /** True if an address is that of a trusted proxy. */
  readonly isProxy: (address: string) => boolean
  readonly onTrouble: (trouble: string) => void
}

/** The sources that are asked when figures are read. */
export interface TelemetrySources {
  readonly connections: () => number
  readonly upstreams: () => Iterable<Upstream>
  readonly routes: () => readonly Route[]
}

/** The reasons why calls are turned away before a rule is asked, by the status that they get. */
const reasons: Readonly<Record<number, string>> = {
  400: 'unreadable',
  405: 'method',
  408: 'timeout',
  417: 'expectation',
  431: 'headers-too-large',
  505: 'version',
}

/** Follows each call from its beginning to its end: for metrics always, for the access log and for traces if they are on. */
export class Telemetry {
  readonly #options: TelemetryOptions
  readonly #counts = new TrafficCounts()
  readonly #rejected = new Map<string, number>()
  #log: AccessLog | undefined
  #tracing: Tracing | undefined
  #inProgress = 0

  private constructor(options: TelemetryOptions) {
    this.#options = options
  }

  /** Throws if the access log cannot be written. */
  static async open(options: TelemetryOptions): Promise<Telemetry> {
    const telemetry = new Telemetry(options)
    const { settings, isProxy } = options
    const isTrusted = ({ peer }: CallRecord): boolean => peer !== undefined && isProxy(peer)
    if (settings.accessLog) telemetry.#log = await AccessLog.open(settings.accessLog, options)
    if (settings.tracing) telemetry.#tracing = new Tracing(settings.tracing, { ...options, isTrusted })
    return telemetry
  }

  /** Records calls from the moment at which a listener gets them until their response is over. */
  recording(listener: RequestListener): RequestListener {
    const telemetry = this
    // one for all responses
    const onClose = function (this: ServerResponse): void {
      telemetry.#end(recordOf(this))
    }
    return (request, response) => {
      const record = new CallRecord(request, response, performance.now())
      this.#inProgress++
      this.#identify(record)
      this.#tracing?.begin(record)
      // before the next call of the connection begins, whose bytes are its own
      response.prependListener('close', onClose)
      listener(request, response)
    }
  }

  /** Records an answer that `write` writes to a socket itself; `request` is unknown if its bytes could not be read. */
  answer(
    socket: Socket,
    status: number,
    write: () => void,
    request: IncomingMessage = new IncomingMessage(socket),
  ): void {
    const record = new CallRecord(request, new ServerResponse(request), performance.now())
    this.#identify(record)
    write()
    record.answered(status)
    this.#finish(record)
  }

  /** Counts a connection that was turned away. */
  reject(reason: string): void {
    this.#rejected.set(reason, (this.#rejected.get(reason) ?? 0) + 1)
  }

  figures({ connections, upstreams, routes }: TelemetrySources): HttpStats {
    const figures = {
      traffic: this.#counts.figures(),
      upstreams: Array.from(new Set(upstreams()), upstreamStats),
      routes: routes()
        .filter(({ ownAnswer }) => ownAnswer === undefined)
        .map(routeStats),
      rejected: Object.fromEntries(this.#rejected),
      inProgress: this.#inProgress,
      connections: connections(),
      droppedLines: this.#log?.dropped ?? 0,
      exportedSpans: this.#tracing?.exported ?? 0,
      droppedSpans: this.#tracing?.dropped ?? 0,
      faults: faultCounts(),
    }
    // a name in DNS may have several addresses, which are one here
    return mergeHttpStats([figures])
  }

  /** Returns what the admin API reports of this process once a second. */
  callerSide({ connections }: Pick<TelemetrySources, 'connections'>): CallerSide {
    return {
      connections: connections(),
      inProgress: this.#inProgress,
      rejected: Object.fromEntries(this.#rejected),
    }
  }

  /** Goes on with a new file for the access log, if the present one was renamed. */
  async reopen(): Promise<void> {
    await this.#log?.reopen()
  }

  async close(): Promise<void> {
    await Promise.all([this.#log?.close(), this.#tracing?.close()])
  }

  #identify(record: CallRecord): void {
    const { headers } = record.request
    const given = headers['x-request-id']
    const { peer } = record
    if (isRequestId(given) && peer !== undefined && this.#options.isProxy(peer)) record.requestId = given
    else {
      record.requestId = createRequestId()
      // the service gets this header, and every part of the gateway reads it
      headers['x-request-id'] = record.requestId
    }
  }

  #end(record: CallRecord | undefined): void {
    // a response may close twice
    if (record === undefined || record.endedAt !== 0) return
    this.#inProgress--
    this.#finish(record)
  }

  #finish(record: CallRecord): void {
    record.finish(performance.now())
    this.#counts.add(record)
    if (record.route !== undefined) record.upstream?.traffic.add(record.route.id, record)
    if (record.route === undefined && verdictOf(record.request) === undefined) {
      const reason = reasons[record.status]
      if (reason !== undefined) this.reject(reason)
    }
    if (record.unsentReason !== undefined) this.reject(record.unsentReason)
    this.#log?.add(record)
    this.#tracing?.end(record)
  }
}

function routeStats({ label, pool }: Route): RouteStats {
  const states = { healthy: 0, resting: 0, unhealthy: 0 }
  const now = performance.now()
  for (const { health } of pool.upstreams) states[health.state(now).state]++
  return { route: label, states }
}

function upstreamStats({ label, slots, clients, health, isRetired }: Upstream): UpstreamStats {
  const state: UpstreamState = isRetired ? 'draining' : health.state(performance.now()).state
  return {
    ...{ upstream: label, inProgress: slots.inUse, waiting: slots.waiting, connections: clients.size },
    states: { healthy: 0, resting: 0, unhealthy: 0, draining: 0, [state]: 1 },
  }
}
