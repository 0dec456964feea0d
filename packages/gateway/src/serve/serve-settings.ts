import type { Section } from 'diana-limiter'
import { duration, listOf, z } from 'diana-limiter/schema'
import { type AccessLogSettings, accessLogSchema } from '../settings/access-log-settings.ts'
import { type AdminSettings, adminSchema } from '../settings/admin-settings.ts'
import {
  type GatewaySettings,
  healthPathSchema,
  parseGatewaySettings,
  shutdownSchema,
} from '../settings/gateway-settings.ts'
import { type TlsSettings, tlsSchema } from '../settings/tls-settings.ts'
import { hostSchema, portSchema, sizeOf } from '../settings/values.ts'
import type { RespUserSettings } from './resp/resp-users.ts'

/** The address of one of the ports. */
export interface ListenSettings {
  readonly host?: string | undefined
  readonly port?: number | undefined
}

/** The port that speaks the Redis protocol. */
export interface RespSettings extends ListenSettings {
  /** True if it uses the certificates of `tls`, if there are any. */
  readonly tls: boolean
  readonly users?: readonly RespUserSettings[] | undefined
}

/** The section `serve:`, validated. */
export interface ServeSettings {
  /** The HTTP port. */
  readonly listen: ListenSettings
  /** The gRPC port; undefined if it is off. */
  readonly grpc?: ListenSettings | undefined
  /** The port for HAProxy's agent protocol; undefined unless it is given. */
  readonly spoe?: ListenSettings | undefined
  /** The port that speaks the Redis protocol; undefined unless it is given. */
  readonly redis?: RespSettings | undefined
  readonly tls?: TlsSettings | undefined
  readonly admin?: AdminSettings | undefined
  /** The longest time that a proxy waits for an answer to a question over gRPC or SPOE. */
  readonly deadlineMs: number
  /** A call waits for this long at most, whatever its rules say: proxies wait only for a while. */
  readonly maxWaitMs: number
  /** The headers of a question over HTTP may have this many bytes together. */
  readonly headersBytes: number
  readonly connections: number
  readonly shutdown: GatewaySettings['shutdown']
  readonly healthPath: string
  readonly accessLog?: AccessLogSettings | undefined
}

const usualDeadlineMs = 15
/** Half as long as the shipped configurations of proxies wait for an answer over HTTP. */
const usualWaitMs = 500
/** nginx lets 32 KiB of headers pass, Envoy 60 KiB; what a proxy adds stands beside them. */
const usualHeadersBytes = 131_072
const listen = z.strictObject({ host: hostSchema.optional(), port: portSchema.optional() })

const userSchema: z.Schema<RespUserSettings> = z
  .strictObject({
    name: z.string().min(1).max(100).default('default').describe('default is who sends a password alone.'),
    password: z.string().min(1).max(1024).describe('env:NAME, file:PATH, or the password itself, of 16 bytes or more.'),
    rules: listOf(z.string().min(1).max(200), { min: 0, max: 1000 })
      .optional()
      .describe('The rules that the user may name; left out, all.'),
    throttle: z.boolean().optional().describe('May bring limits along (CL.THROTTLE); default: only without rules.'),
  })
  .transform(
    ({ throttle, ...words }): RespUserSettings => ({ ...words, throttle: throttle ?? words.rules === undefined }),
  )
const redisSchema: z.Schema<RespSettings> = z.strictObject({
  host: hostSchema.optional(),
  port: portSchema.optional(),
  tls: z.boolean().default(true).describe('With the certificates of tls, if they are given; false: none.'),
  users: listOf(userSchema, { min: 1, max: 1000 })
    .optional()
    .describe('Who may ask, from any address; left out, the peers of trustProxy, without a password.'),
})

const schema: z.Schema<ServeSettings> = z
  .strictObject({
    listen: listen.default({}).describe('The HTTP port: 127.0.0.1:8082 unless given; read at the start.'),
    grpc: z
      .union([z.literal(false), listen])
      .default({})
      .describe('The gRPC port: 127.0.0.1:8083 unless given; false: none. Read at the start.'),
    spoe: listen.optional().describe("The port for HAProxy's agent protocol; left out, none. Read at the start."),
    redis: redisSchema
      .optional()
      .describe(
        'The port that speaks the Redis protocol, 127.0.0.1:8085 unless given; left out, none. Read at the start.',
      ),
    tls: tlsSchema.optional().describe('Of the HTTP, gRPC and Redis ports; with clients, proxies identify themselves.'),
    admin: adminSchema.optional().describe('Where operators come in; read at the start.'),
    deadline: duration
      .default(usualDeadlineMs)
      .describe('Within this time gRPC and SPOE are answered, if need be by counting in this process; default: 15ms.'),
    maxWait: duration
      .default(usualWaitMs)
      .describe(
        'A call waits for this long at most by a rule with whenFull: wait; less than the proxy waits; default: 500ms.',
      ),
    headers: sizeOf({ least: '1KiB', most: '4MiB' })
      .default(usualHeadersBytes)
      .describe('All headers of a question over HTTP together; larger ones get 431; default: 128KiB.'),
    connections: z
      .int()
      .min(1)
      .max(1_000_000)
      .default(10_000)
      .describe('Connections that each port of a process may have open; default: 10000.'),
    shutdown: shutdownSchema.describe('How the decision server ends.'),
    healthPath: healthPathSchema
      .default('/healthz')
      .describe('A path of the HTTP port that answers 200, or 503 at the end.'),
    accessLog: accessLogSchema
      .optional()
      .describe('A line for each question over HTTP; left out, none. Read at the start.'),
  })
  .transform(
    ({ grpc, deadline, maxWait, headers, ...words }): ServeSettings => ({
      ...words,
      grpc: grpc === false ? undefined : grpc,
      deadlineMs: deadline,
      maxWaitMs: maxWait,
      headersBytes: headers,
    }),
  )

/** The section `serve:` of a rule file. */
export const serveSection: Section = {
  name: 'serve',
  schema: schema.describe('The decision server: where proxies ask, and within which time they are answered.'),
  from: { module: new URL('./serve-settings.js', import.meta.url).href, name: 'serveSection' },
}

export function parseServeSettings(words: unknown): ServeSettings {
  return schema.parse(words)
}

/** Returns what the HTTP port shares with the gateway: it is the same server. */
export function httpSettingsOf(settings: ServeSettings): GatewaySettings {
  const usual = parseGatewaySettings({})
  const { listen, tls, admin, connections, headersBytes, shutdown, healthPath, accessLog } = settings
  const limits = { ...usual.limits, connections, headersBytes, connectionsPerCaller: Number.POSITIVE_INFINITY }
  return { ...usual, ...{ listen, tls, admin, limits, shutdown, healthPath, accessLog } }
}
