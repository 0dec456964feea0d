import { duration, listOf, textOf, z } from 'diana-limiter/schema'
import { intervalDuration } from '../values.ts'

/** Health checks that the gateway makes itself. */
export interface CheckSettings {
  readonly path: string
  readonly intervalMs: number
  readonly timeoutMs: number
  /**
   * The number of good checks in a row after which an unhealthy address is healthy; `unhealthy` is the number of bad ones for the reverse.
   */
  readonly healthy: number
  readonly unhealthy: number
  /** The statuses of a good answer, as inclusive ranges. */
  readonly statuses: readonly StatusRange[]
  /** The Host to ask for; that of the address unless given. */
  readonly host?: string | undefined
}

export type StatusRange = readonly [from: number, to: number]

/** The conditions under which an address is left alone. */
export interface HealthSettings {
  readonly failures: number
  readonly restMs: number
  /** Statuses that count as failures. */
  readonly failStatuses: readonly number[]
  readonly check?: CheckSettings | undefined
}

const status = z.int().min(100).max(599)
const statusRange = z.union([
  status.transform((one): StatusRange => [one, one]),
  textOf(text =>
    /^[1-5]xx$/.test(text) ? undefined : 'must be a status such as 200, or a class such as 2xx',
  ).transform((text): StatusRange => [Number(text[0]) * 100, Number(text[0]) * 100 + 99]),
])

const target = textOf(text =>
  /^\/[\x21-\x22\x24-\x7e]*$/.test(text) ? undefined : 'must be a path such as /healthz, without spaces and #',
)
const checkHost = textOf(text =>
  /^[\w.-]{1,255}(?::\d{1,5})?$|^\[[\da-f:.]+\](?::\d{1,5})?$/i.test(text)
    ? undefined
    : 'must be a host such as app.internal',
)

const checkSchema = z
  .strictObject({
    path: target.describe('What is asked for, such as /healthz.'),
    interval: intervalDuration.default(10_000).describe('Between two checks, more or less a tenth; default: 10s.'),
    timeout: intervalDuration.default(2000).describe('Until the answer begins; default: 2s.'),
    healthy: z.int().min(1).max(100).default(2).describe('After so many good answers in a row it gets calls again.'),
    unhealthy: z.int().min(1).max(100).default(3).describe('After so many bad ones in a row it gets none.'),
    statuses: listOf(statusRange, { min: 1, max: 100 })
      .prefault('2xx')
      .describe('Good answers, such as 200 or 2xx; default: 2xx.'),
    host: checkHost.optional().describe('The Host to ask for; that of the address unless given.'),
  })
  .transform(({ interval, timeout, ...rest }) => ({ ...rest, intervalMs: interval, timeoutMs: timeout }))

export const healthSchema: z.Schema<HealthSettings> = z
  .strictObject({
    failures: z.int().min(1).max(1000).default(3).describe('After so many failures in a row an address rests.'),
    rest: duration.default(5000).describe('For how long at first; twice as long each time, up to 16 times.'),
    failStatuses: listOf(z.int().min(400).max(599), { min: 1, max: 100 })
      .default([])
      .describe(
        'Statuses that count as failures, such as 503; such a call is tried at another address if it may be repeated.',
      ),
    check: checkSchema.optional().describe('Checks that the gateway makes itself; none unless given.'),
  })
  .transform(({ rest, ...others }) => ({ ...others, restMs: rest }))
