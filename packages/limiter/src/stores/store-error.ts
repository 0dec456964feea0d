import { TooLate } from '../common/within.ts'
import { type Cause, causes, FAILED_TRANSACTION, LOST_COUNTS, UNKNOWN_BUG, UNREACHABLE } from './store-error-causes.ts'

export type { TroubleKind } from './store-error-causes.ts'

export interface StoreError extends Pick<Cause, 'code' | 'kind' | 'remedy'> {
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
/** What ioredis says of a command while it has no connection, about settings that Diana has chosen. */
const NOT_CONNECTED = /Stream isn't writeable/

export function classifyError(error: unknown): StoreError {
  const text = error instanceof Error ? error.message : String(error)
  const isSilent = error instanceof TooLate
  const { code, kind, remedy } = causeOf(error, text)
  const message = NOT_CONNECTED.test(text) ? 'there is no connection to Redis' : text.slice(0, LONGEST)
  return { code, kind, remedy, message, isSilent }
}

function causeOf(error: unknown, text: string): Pick<Cause, 'code' | 'kind' | 'remedy'> {
  if (error instanceof CountsLost) return LOST_COUNTS
  if (error instanceof FailedTransaction) return FAILED_TRANSACTION
  return causes.find(({ pattern }) => pattern.test(text)) ?? unknownCause(error, text)
}

/** What no server has said is about the way to it. */
function unknownCause(error: unknown, text: string): Pick<Cause, 'code' | 'kind' | 'remedy'> {
  return isReply(error, /^(?:ERR )?([A-Z]{3,})\b/.exec(text)?.[1] ?? '') ? UNKNOWN_BUG : UNREACHABLE
}

/** Clients name what a server answered. */
function isReply(error: unknown, word: string): boolean {
  const name = error instanceof Error ? error.name : ''
  const isNamed = ['ReplyError', 'SimpleError', 'ErrorReply', 'TypeError'].includes(name)
  return word !== '' || isNamed || error instanceof UnreadableReply
}
