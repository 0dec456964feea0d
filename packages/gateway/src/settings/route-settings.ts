import { headerFault, hostFault, listOf, textOf } from 'diana-limiter/words'
import { z } from 'zod'
import { addressesSchema } from './address-settings.ts'
import { timerDuration } from './timer-duration.ts'
import { type UpstreamSettings, upstreamWords } from './upstream-settings.ts'

/** How long a service may take: to be reached, to begin its answer, and between two pieces of it. */
export interface Timeouts {
  readonly connectMs: number
  readonly headersMs: number
  readonly bodyMs: number
}

/** How many connections an address of a service may have, and how many calls may wait for one, for how long. */
export interface ConnectionSettings {
  readonly max: number
  readonly queueSize: number
  readonly queueMs: number
  /** How long a connection without a call is kept, unless the service says. */
  readonly idleMs: number
  /** How old a connection may be that takes a new call; none is any age. */
  readonly maxAgeMs?: number | undefined
}

/** Headers to put in place of what was there, and headers to take out; names are in lower case. */
export interface HeaderChanges {
  readonly set: Readonly<Record<string, string>>
  readonly remove: readonly string[]
}

/** Which calls go to which service, and how they are changed on the way. */
export interface RouteSettings extends UpstreamSettings {
  /** Host names, or `*.` and a name; none is every host. */
  readonly host: readonly string[]
  /** The path itself and everything below it. */
  readonly path: string
  /** The addresses of the service. */
  readonly to: readonly string[]
  /** What takes the place of `path`; none leaves it. */
  readonly rewrite?: string | undefined
  /** Whether the caller's Host is sent on; left out, it is to services over http. */
  readonly keepHost?: boolean | undefined
  readonly requestHeaders: HeaderChanges
  readonly responseHeaders: HeaderChanges
  readonly timeouts: Timeouts
  readonly connections: ConnectionSettings
  readonly retry: boolean
}

/** What a proxy says itself, or what would break the framing of a message. */
const ours: readonly string[] = [
  'connection',
  'content-length',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

function changedHeaderFault(name: string): string | undefined {
  if (!ours.includes(name.toLowerCase())) return headerFault(name)
  return name.toLowerCase() === 'host' ? 'is set by keepHost: leave it out' : 'belongs to the connection: leave it out'
}

const headerName = textOf(changedHeaderFault, 128).transform(name => name.toLowerCase())
const headerValue = z
  .string()
  .max(4096)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, { error: 'has a character that no header may have: take it out' })

/** Headers by name, with the value of each. */
export const headersToSet: z.ZodType<Record<string, string>> = z.record(headerName, headerValue)

const headerChanges = z
  .strictObject({
    set: headersToSet.default({}).describe('Headers to put in place of what was there.'),
    remove: listOf(headerName, { min: 0, max: 100 }).default([]).describe('Headers to take out.'),
  })
  .default({ set: {}, remove: [] })

/** What is wrong with a plain path. */
export function pathFault(path: string): string | undefined {
  if (!path.startsWith('/')) return `must begin with /: write "/${path}"`
  if (/[^\x21-\x7e]|[?#*;\\]|\/\/|\/\.\.?(?:\/|$)/.test(path))
    return 'must be a plain path such as /api, without patterns, queries or dots'
  return undefined
}

const path = textOf(pathFault).transform(text => (text.length > 1 ? text.replace(/\/$/, '') : text))

/** How long services may take, unless a route says otherwise. */
export const timeoutsSchema: z.ZodType<Partial<Timeouts>> = z
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
export const connectionsSchema: z.ZodType<Partial<ConnectionSettings>> = z
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
export type RouteWords = Omit<RouteSettings, 'timeouts' | 'connections'> & {
  readonly timeouts: Partial<Timeouts>
  readonly connections: Partial<ConnectionSettings>
}

export const routeSchema: z.ZodType<RouteWords> = z
  .strictObject({
    host: listOf(
      textOf(hostFault, 255).transform(name => name.toLowerCase()),
      { min: 1, max: 100 },
    )
      .default([])
      .describe('Hosts such as api.example.com or *.example.com; left out, every host.'),
    path: path.default('/').describe('The path and all below it; of several that fit, the longest is taken.'),
    to: addressesSchema.describe(
      'Addresses of the service: http://10.0.0.1:3000, unix:/run/app.sock, or { url, weight }; a name is all its addresses.',
    ),
    rewrite: path.optional().describe('What takes the place of path: / takes it out.'),
    keepHost: z
      .boolean()
      .optional()
      .describe("true sends the caller's Host on, false the service's own; default: true for http, false for https."),
    requestHeaders: headerChanges.describe('Changes to what the service gets.'),
    responseHeaders: headerChanges.describe('Changes to what the caller gets.'),
    timeouts: timeoutsSchema.default({}).describe('How long the service may take.'),
    connections: connectionsSchema.default({}).describe('How many connections each address may have.'),
    retry: z
      .boolean()
      .default(true)
      .describe(
        'Second tries: of every call while nothing was sent, else of calls that may be repeated and have no body.',
      ),
    ...upstreamWords,
  })
  .transform(({ to, slowStart, ...words }) => ({
    ...words,
    to: to.map(({ url }) => url),
    weights: to.map(({ weight }) => weight),
    slowStartMs: slowStart ?? 0,
  }))
