import type { IncomingHttpHeaders } from 'node:http'
import { grpcStatus } from './grpc-status.ts'

const grpcType = /^application\/grpc(?:-web(?:-text)?)?(?:\+[\w.-]+)?(?=;|$)/

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }

/** The longest time that a setTimeout can wait. */
const maxTimerMs = 2 ** 31 - 1

/** The trailers that end an answer which has begun when the caller's deadline passes. */
export const deadlineTrailers: readonly string[] = [
  ...['grpc-status', `${grpcStatus.deadlineExceeded}`],
  ...['grpc-message', 'The deadline of this call has passed.'],
]

/** Returns the content type of a gRPC call, without parameters; undefined for any other call. */
export function grpcTypeOf({ 'content-type': type }: IncomingHttpHeaders): string | undefined {
  return type === undefined ? undefined : grpcType.exec(type.toLowerCase())?.[0]
}

/** Returns how long the caller waits for the whole call; undefined for no bound. */
export function grpcTimeoutMs(headers: IncomingHttpHeaders): number | undefined {
  const text = headers['grpc-timeout']
  if (typeof text !== 'string') return undefined
  const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? []
  if (amount === undefined || unit === undefined || grpcTypeOf(headers) === undefined) return undefined
  return Math.min(Math.ceil(Number(amount) * unitMs[unit]!), maxTimerMs)
}
