import { hostFault, listOf, textOf, z } from 'diana-limiter/schema'
import { type CompressionSettings, compressionSchema } from '../compression-settings.ts'
import { type ServiceTlsSettings, serviceTlsSchema } from '../tls-settings.ts'
import { addressesSchema } from '../upstreams/address-settings.ts'
import { protocolSchema, type ServiceProtocol } from '../upstreams/protocol-settings.ts'
import { type UpstreamSettings, upstreamWords } from '../upstreams/upstream-settings.ts'
import { sizeOf, timerDuration } from '../values.ts'
import { type AnswerSettings, answerSchema, type RedirectSettings, redirectSchema } from './answer-settings.ts'
import { headerName, headersToSet } from './header-settings.ts'
import { headersSchema, methodsSchema, pathFault, type RouteConditions } from './match-settings.ts'

/** The callers that get interim answers such as 103. */
export type EarlyHints = 'auto' | 'always' | 'never'

export const earlyHintsSchema: z.Schema<EarlyHints> = z.enum(['auto', 'always', 'never'])

/** The longest times of a service: to be reached, to begin its answer, and between two pieces of it. */
export interface Timeouts {
  readonly connectMs: number
  readonly headersMs: number
  readonly bodyMs: number
}

/** The most connections of an address of a service, and how many calls may wait for one, for how long. */
export interface ConnectionSettings {
  readonly max: number
  readonly queueSize: number
  readonly queueMs: number
  /** The time for which a connection without a call is kept, unless the service says. */
  readonly idleMs: number
  /** The highest age of a connection that takes a new call; none is any age. */
  readonly maxAgeMs?: number | undefined
}

/** Headers to put in place of what was there, and headers to take out; names are in lower case. */
export interface HeaderChanges {
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
}

/** The calls that go to a service, and how they are changed on the way. */
export interface RouteSettings extends RouteConditions, UpstreamSettings {
  /** Host names, or `*.` and a name; none is every host. */
  readonly host: readonly string[]
  /** The path itself and everything below it. */
  readonly path: string
  /** The addresses of the service; none if the gateway answers itself. */
  readonly to: readonly string[]
  /** The version of HTTP that the service speaks; none finds out over TLS, and is HTTP/1.1 without. */
  readonly protocol?: ServiceProtocol | undefined
  /** The gateway's own answer. */
  readonly answer?: AnswerSettings | undefined
  readonly redirect?: RedirectSettings | undefined
  /** The largest size of a call's body. */
  readonly bodyBytes: number
  /** The text that takes the place of `path`; none leaves it. */
  readonly rewrite?: string | undefined
  /** True if the caller's Host is sent on; left out, it is to services over http. */
  readonly keepHost?: boolean | undefined
  readonly requestHeaders: HeaderChanges
  readonly responseHeaders: HeaderChanges
  /** The answers that are compressed; none unless given. */
  readonly compression?: CompressionSettings | false | undefined
  readonly earlyHints?: EarlyHints | undefined
  /** The verification of the service, and of the gateway by it. */
  readonly tls?: ServiceTlsSettings | undefined
  readonly timeouts: Timeouts
  readonly connections: ConnectionSettings
  /** The largest size of an answer's headers; as Node's own limit unless given. */
  readonly maxHeadBytes?: number | undefined
  readonly retry: boolean
}

const headerChanges = z
  .strictObject({
    set: headersToSet.default({}).describe('Headers to put in place of what was there.'),
    remove: listOf(headerName, { min: 0, max: 100 }).default([]).describe('Headers to take out.'),
  })
  .default({ set: {}, remove: [] })

const path = textOf(pathFault).transform(text => (text.length > 1 ? text.replace(/\/$/, '') : text))

/** The longest times of services, unless a route says otherwise. */
export const timeoutsSchema: z.Schema<Partial<Timeouts>> = z
  .strictObject({
    connect: timerDuration.optional().describe('To reach a service; default: 5s.'),
    headers: timerDuration.optional().describe('Until it begins its answer; default: 60s.'),
    body: timerDuration.optional().describe('Between two pieces of its answer; default: 60s.'),
  })
  .transform(({ connect, headers, body }) => ({
    ...(connect === undefined ? {} : { connectMs: connect }),
    ...(headers === undefined ? {} : { headersMs: headers }),
    ...(body === undefined ? {} : { bodyMs: body }),
  }))

/** Connections to each address of a service, unless a route says otherwise. */
export const connectionsSchema: z.Schema<Partial<ConnectionSettings>> = z
  .strictObject({
    max: z.int().min(1).max(100_000).optional().describe('Open at a time; default: 1024.'),
    queue: z
      .strictObject({
        size: z.int().min(0).max(1_000_000).optional().describe('Calls that may wait for one; default: 1024.'),
        timeout: timerDuration.optional().describe('How long a call may wait for one; default: 5s.'),
      })
      .default({})
      .describe('What happens when all are in use: calls wait, and get a 503 when they cannot.'),
    idle: timerDuration
      .optional()
      .describe('How long one without a call is kept, unless the service says; default: 4s.'),
    maxAge: timerDuration.optional().describe('How old one may be that takes a new call; left out, any age.'),
  })
  .transform(({ max, queue: { size, timeout }, idle, maxAge }) => ({
    ...(max === undefined ? {} : { max }),
    ...(size === undefined ? {} : { queueSize: size }),
    ...(timeout === undefined ? {} : { queueMs: timeout }),
    ...(idle === undefined ? {} : { idleMs: idle }),
    ...(maxAge === undefined ? {} : { maxAgeMs: maxAge }),
  }))

/** A route with only those timeouts and connection settings that it says itself. */
export type RouteWords = Omit<RouteSettings, 'timeouts' | 'connections' | 'bodyBytes' | 'maxHeadBytes'> & {
  readonly bodyBytes: number | undefined
  readonly timeouts: Partial<Timeouts>
  readonly connections: Partial<ConnectionSettings>
}

export const routeSchema: z.Schema<RouteWords> = z
  .strictObject({
    host: listOf(
      textOf(hostFault, 255).transform(name => name.toLowerCase()),
      { min: 1, max: 100 },
    )
      .default([])
      .describe('Hosts such as api.example.com or *.example.com; left out, every host.'),
    path: path.default('/').describe('The path and all below it; of several that fit, the longest is taken.'),
    method: methodsSchema,
    header: headersSchema,
    to: addressesSchema
      .optional()
      .describe(
        'Addresses of the service: http://10.0.0.1:3000, unix:/run/app.sock, or { url, weight }; a name is all its addresses.',
      ),
    protocol: protocolSchema,
    answer: answerSchema.optional().describe('What the gateway answers itself, in place of a service.'),
    redirect: redirectSchema.optional().describe('Where callers are sent, in place of a service.'),
    limits: z
      .strictObject({
        body: sizeOf({ least: '1B', most: '999GiB' }).optional().describe('The body of a call; left out, as for all.'),
      })
      .default({})
      .describe('What a call may be.'),
    rewrite: path.optional().describe('What takes the place of path: / takes it out.'),
    keepHost: z
      .boolean()
      .optional()
      .describe("true sends the caller's Host on, false the service's own; default: true for http, false for https."),
    requestHeaders: headerChanges.describe('Changes to what the service gets.'),
    responseHeaders: headerChanges.describe('Changes to what the caller gets.'),
    compression: compressionSchema.optional().describe('Which answers are compressed; left out, as for all.'),
    earlyHints: earlyHintsSchema.optional().describe('Who gets interim answers; left out, as for all.'),
    timeouts: timeoutsSchema.default({}).describe('How long the service may take.'),
    connections: connectionsSchema.default({}).describe('How many connections each address may have.'),
    tls: serviceTlsSchema
      .optional()
      .describe('For services over https: how they are verified, and the gateway to them.'),
    retry: z
      .boolean()
      .default(true)
      .describe(
        'Second tries: of every call while nothing was sent, else of calls that may be repeated and have no body.',
      ),
    ...upstreamWords,
  })
  .superRefine(({ to, answer, redirect }, context) => {
    const given = [to, answer, redirect].filter(one => one !== undefined).length
    if (given === 1) return
    const message =
      given === 0
        ? 'leads nowhere: add to, answer or redirect'
        : 'has more than one of to, answer and redirect: leave one of them'
    context.addIssue({ code: 'custom', message })
  })
  .superRefine(({ to = [], tls }, context) => {
    if (tls === undefined || to.some(({ url }) => /^https:/i.test(url))) return
    const message = 'is only for services over https, and this route has none: leave tls out'
    context.addIssue({ code: 'custom', path: ['tls'], message })
  })
  .transform(({ to = [], slowStart, limits, ...words }) => ({
    ...words,
    to: to.map(({ url }) => url),
    weights: to.map(({ weight }) => weight),
    bodyBytes: limits.body,
    slowStartMs: slowStart ?? 0,
  }))
