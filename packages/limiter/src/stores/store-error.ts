import { TooLate } from '../common/within.ts'
import {
  type Cause,
  causes,
  FAILED_TRANSACTION,
  LOST_COUNTS,
  type StoreCode,
  UNKNOWN_BUG,
  UNREACHABLE,
} from './store-error-causes.ts'

export type { TroubleKind } from './store-error-causes.ts'

export interface StoreError extends Omit<Cause, 'pattern'> {
  readonly message: string
  /** The store said nothing: whoever asks again waits again. */
  readonly isSilent: boolean
}

/** The store has lost what it had counted. */
export class CountsLost extends Error {
  constructor() {
    super('the store has lost its counts: it was emptied, started empty, or has evicted them')
  }
}

/** A transaction in a store of the user has failed. */
export class FailedTransaction extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/** Redis has answered something that makes no sense; `instead` is what was due. */
export class UnreadableReply extends Error {
  constructor(instead: string, reply: unknown) {
    super(`Redis answered something other than ${instead}: ${String(reply).slice(0, 100)}`)
  }
}

const LONGEST = 300
const ASPECTS_OF_TLS: ReadonlySet<StoreCode> = new Set(['STORE_SPEAKS_NO_TLS', 'STORE_CLOSES_CONNECTIONS'])
/** What ioredis says of a command while it has no connection, about settings that Diana has chosen. */
const NOT_CONNECTED = /Stream isn't writeable/

export function classifyError(error: unknown): StoreError {
  const text = error instanceof Error ? error.message : String(error)
  const isSilent = error instanceof TooLate
  const { code, kind, what, remedy } = causeOf(error, text)
  const message = NOT_CONNECTED.test(text) ? 'there is no connection to Redis' : text.slice(0, LONGEST)
  return { code, kind, what, remedy, message, isSilent }
}

/**
 * Returns the error of a connection by what it means: a server that has answered before speaks what it is asked in, so that it was
 * stopped or cut off; one that closes each connection from the start may speak something else.
 */
export function connectionError(error: unknown, hasWorked: boolean): unknown {
  if (error === undefined) return undefined
  const { code, message } = classifyError(error)
  if (hasWorked && ASPECTS_OF_TLS.has(code)) return new Error('the connection to Redis was lost', { cause: error })
  if (hasWorked || !/ECONNRESET|EPIPE/.test(message)) return error
  return new Error(`the server closes each connection: ${message}`, { cause: error })
}

function causeOf(error: unknown, text: string): Omit<Cause, 'pattern'> {
  if (error instanceof CountsLost) return LOST_COUNTS
  if (error instanceof FailedTransaction) return FAILED_TRANSACTION
  return causes.find(({ pattern }) => pattern.test(text)) ?? unknownCause(error, text)
}

/** What no server has said is about the way to it. */
function unknownCause(error: unknown, text: string): Omit<Cause, 'pattern'> {
  return isReply(error, /^(?:ERR )?([A-Z]{3,})\b/.exec(text)?.[1] ?? '') ? UNKNOWN_BUG : UNREACHABLE
}

/** Clients name what a server answered. */
function isReply(error: unknown, word: string): boolean {
  const name = error instanceof Error ? error.name : ''
  const isNamed = ['ReplyError', 'SimpleError', 'ErrorReply', 'TypeError'].includes(name)
  return word !== '' || isNamed || error instanceof UnreadableReply
}
