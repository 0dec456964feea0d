import type { Section } from 'diana-limiter'
import { canonicalHost, duration, textOf, z } from 'diana-limiter/schema'
import { type AccessLogSettings, accessLogSchema } from './access-log-settings.ts'
import { type AdminSettings, adminSchema } from './admin-settings.ts'
import { compressionSchema } from './compression-settings.ts'
import { type CorsSettings, corsSchema } from './cors-settings.ts'
import { oneSpelling } from './one-spelling.ts'
import { type FilterSettings, filterSchema } from './routes/filter-settings.ts'
import { headersToSet } from './routes/header-settings.ts'
import { conditionsKey, pathFault } from './routes/match-settings.ts'
import {
  type ConnectionSettings,
  connectionsSchema,
  earlyHintsSchema,
  type RouteSettings,
  type RouteWords,
  routeSchema,
  type Timeouts,
  timeoutsSchema,
} from './routes/route-settings.ts'
import { type TlsSettings, tlsSchema } from './tls-settings.ts'
import { type TracingSettings, tracingSchema } from './tracing-settings.ts'
import { hostSchema, intervalDuration, portSchema, sizeOf } from './values.ts'

/** The way in which names of services are followed. */
export interface DnsSettings {
  readonly intervalMs: number
}

const dnsSchema: z.Schema<DnsSettings> = z
  .strictObject({
    interval: intervalDuration.default(5000).describe('How often each name is looked up again; default: 5s.'),
  })
  .transform(({ interval }) => ({ intervalMs: interval }))

/** Allows callers to use HTTP/2. */
const http2Schema: z.DefaultSchema<z.BooleanSchema> = z
  .boolean()
  .default(true)
  .describe('HTTP/2 for callers: by ALPN over TLS, with prior knowledge over plain TCP; default: true.')

/** The limits of a call, and of a caller. */
export interface CallerLimits {
  readonly headersBytes: number
  readonly bodyBytes: number
  readonly pauseMs: number
  /** Connections that this process may have open at a time. */
  readonly connections: number
  /** Connections that one address may have open at a time; Infinity for any number. */
  readonly connectionsPerCaller: number
  /** The least bytes that a caller must send or read while a service waits for it, on average. */
  readonly minBytesPerSecond: number
  /** The time by which a caller may fall behind that. */
  readonly graceMs: number
}

/** The section `gateway:`, validated. */
export interface GatewaySettings {
  readonly listen: {
    readonly host?: string | undefined
    readonly port?: number | undefined
    /** True if every connection begins with a PROXY header. */
    readonly proxyProtocol?: boolean | undefined
  }
  readonly tls?: TlsSettings | undefined
  /** True if callers may use HTTP/2. */
  readonly http2: boolean
  readonly admin?: AdminSettings | undefined
  readonly limits: CallerLimits
  readonly shutdown: { readonly delayMs: number; readonly timeoutMs: number }
  /** A path of the traffic port at which the gateway reports whether it takes calls; none unless given. */
  readonly healthPath?: string | undefined
  readonly cors?: CorsSettings | undefined
  /** Headers of every answer, unless the service says its own. */
  readonly answerHeaders: Readonly<Record<string, string>>
  /** The time between two lookups of a service's name. */
  readonly dns: DnsSettings
  readonly accessLog?: AccessLogSettings | undefined
  readonly tracing?: TracingSettings | undefined
  readonly filters: readonly FilterSettings[]
  readonly routes: readonly RouteSettings[]
}

const usual: Timeouts = { connectMs: 5000, headersMs: 60_000, bodyMs: 60_000 }
const usualConnections: ConnectionSettings = { max: 1024, queueSize: 1024, queueMs: 5000, idleMs: 4000 }

/** The steps in which a process ends. */
export const shutdownSchema: z.Schema<GatewaySettings['shutdown']> = z
  .strictObject({
    delay: duration.optional().describe('How long calls are still taken after readiness has turned red.'),
    timeout: duration.default(30_000).describe('How long calls under way may take to finish.'),
  })
  .prefault({})
  .transform(({ delay, timeout }) => ({ delayMs: delay ?? 0, timeoutMs: timeout }))

/** A path of the port for calls that answers whether calls are taken. */
export const healthPathSchema: z.Schema<string> = textOf(pathFault, 1024)

const schema = z
  .strictObject({
    listen: z
      .strictObject({
        host: hostSchema.optional(),
        port: portSchema.optional(),
        proxyProtocol: z
          .boolean()
          .optional()
          .describe(
            'true: every connection comes from a proxy of trustProxy and begins with a PROXY header (v1 or v2).',
          ),
      })
      .default({})
      .describe('Where callers come in, unless the command line says; read at the start.'),
    tls: tlsSchema.optional().describe('Paths as seen from this file; left out, callers come in over plain HTTP.'),
    http2: http2Schema,
    admin: adminSchema.optional().describe('Where operators come in; read at the start.'),
    limits: z
      .strictObject({
        headers: sizeOf({ least: '1KiB', most: '1MiB' }).default(16_384).describe('All headers of a call together.'),
        responseHeaders: sizeOf({ least: '1KiB', most: '16MiB' })
          .default(65_536)
          .describe('All headers of an answer of a service together; default: 64KiB.'),
        body: sizeOf({ least: '1B', most: '999GiB' }).optional().describe('The body of a call; left out, any size.'),
        time: duration
          .default(300_000)
          .describe('How long a caller may take to send the headers of a call, and to pause in its body; default: 5m.'),
        connections: z
          .int()
          .min(1)
          .max(10_000_000)
          .default(50_000)
          .describe('Connections of all callers that one process may have open; default: 50000.'),
        connectionsPerCaller: z
          .int()
          .min(0)
          .max(1_000_000)
          .default(512)
          .describe('Connections that one address may have open; trusted proxies may have any number; 0: no bound.'),
        minRate: sizeOf({ least: '0B', most: '1GiB' })
          .default(500)
          .describe('What a caller must send or read per second, on average, while a service waits; default: 500B.'),
        grace: duration.default(60_000).describe('How far a caller may fall behind minRate; default: 60s.'),
      })
      .default({
        headers: 16_384,
        responseHeaders: 65_536,
        time: 300_000,
        connections: 50_000,
        connectionsPerCaller: 512,
        minRate: 500,
        grace: 60_000,
      })
      .describe('What a call may be, and what a caller may take.'),
    connections: connectionsSchema
      .default({})
      .describe('Connections to each address of a service; a route may say its own.'),
    dns: dnsSchema.prefault({}).describe('How names of services are followed.'),
    timeouts: timeoutsSchema.default({}).describe('How long services may take; a route may say its own.'),
    shutdown: shutdownSchema.describe('How the gateway ends.'),
    healthPath: healthPathSchema
      .optional()
      .describe(
        'A path such as /healthz that the gateway answers itself: 200, or 503 once it ends; no rule counts it.',
      ),
    cors: corsSchema.optional().describe('Pages of other origins that may read answers, refusals included.'),
    answerHeaders: headersToSet
      .default({})
      .describe('Headers of every answer, also of refusals, where the service has not said its own.'),
    compression: compressionSchema
      .default(false)
      .describe(
        'Answers of services are compressed for callers that ask for it; true for the usual types; default: false.',
      ),
    earlyHints: earlyHintsSchema
      .default('auto')
      .describe(
        'Who gets interim answers (103): auto, callers of HTTP/2 and pages that browsers load; always; never; default: auto.',
      ),
    accessLog: accessLogSchema.optional().describe('A line for each call; left out, none. Read at the start.'),
    tracing: tracingSchema.optional().describe('Spans of calls for OpenTelemetry; left out, none. Read at the start.'),
    filters: z
      .array(filterSchema)
      .max(100)
      .default([])
      .describe('What calls pass behind Diana, in this order; read at the start.'),
    routes: z.array(routeSchema).max(1000).default([]).describe('Which calls go where.'),
  })
  .superRefine(({ routes }, context) => {
    for (const [index, message] of doubles(routes)) {
      context.addIssue({ code: 'custom', path: ['routes', index], message })
    }
  })
  .transform(
    ({ limits, timeouts, connections, compression, earlyHints, routes, ...words }): GatewaySettings => ({
      ...words,
      limits: {
        headersBytes: limits.headers,
        bodyBytes: limits.body ?? Number.POSITIVE_INFINITY,
        pauseMs: limits.time,
        connections: limits.connections,
        connectionsPerCaller: limits.connectionsPerCaller || Number.POSITIVE_INFINITY,
        minBytesPerSecond: limits.minRate,
        graceMs: limits.grace,
      },
      routes: routes.map(route => ({
        ...route,
        bodyBytes: route.bodyBytes ?? limits.body ?? Number.POSITIVE_INFINITY,
        timeouts: { ...usual, ...timeouts, ...route.timeouts },
        connections: { ...usualConnections, ...connections, ...route.connections },
        maxHeadBytes: limits.responseHeaders,
        compression: route.compression ?? compression,
        earlyHints: route.earlyHints ?? earlyHints,
      })),
    }),
  )

/** Lists the routes that hide each other, since they have the same host, path and conditions; each is named. */
function* doubles(routes: readonly RouteWords[]): Generator<[index: number, what: string]> {
  const taken = new Map<string, number>()
  for (const [index, route] of routes.entries()) {
    const { host, path } = route
    const conditions = conditionsKey(route)
    for (const name of host.length === 0 ? ['every host'] : host.map(canonicalHost)) {
      const key = `${name} ${oneSpelling(path) ?? path} ${conditions}`
      const earlier = taken.get(key)
      if (earlier !== undefined && earlier !== index) {
        const hasConditions = route.method.length + Object.keys(route.header).length > 0
        const where = `of ${name}${hasConditions ? ', and the same conditions' : ''}`
        // each in its own spelling
        yield [earlier, `has the path ${routes[earlier]!.path} ${where}, as routes[${index}] does: leave one out`]
        yield [index, `has the path ${path} ${where}, as routes[${earlier}] does: leave one out`]
      }
      taken.set(key, index)
    }
  }
}

/** The section `gateway:` of a rule file. */
export const gatewaySection: Section = {
  name: 'gateway',
  schema: schema.describe('The gateway: where calls come in, what they pass, and where they go.'),
  from: { module: new URL('./gateway-settings.js', import.meta.url).href, name: 'gatewaySection' },
}

/** Returns a gateway that only has this to say, as the file would. */
export function parseGatewaySettings(words: unknown): GatewaySettings {
  return schema.parse(words)
}
