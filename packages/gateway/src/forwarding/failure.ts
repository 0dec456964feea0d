import type { FailureReason } from '../telemetry/call-record.ts'

/** The reason why a call got no answer from a service. */
export interface Failure {
  readonly reason: FailureReason
  readonly status: 400 | 413 | 502 | 503 | 504
  readonly detail: string
  /** True if the address is to blame, rather than the caller. */
  readonly isOfService: boolean
  /** True if the caller is to blame: a service that was sent the call may have done its work. */
  readonly isOfCaller?: boolean
  /** True if the service has surely not begun to answer, so that a call which may be repeated is sent again. */
  readonly mayRetry: boolean
  /** True if the service has said that it did not begin with the call, so that any call may be sent again. */
  readonly isUnprocessed?: boolean
  /** The type of the problem document, if it is one of the gateway's own. */
  readonly type?: string
}

const unreachable: Failure = {
  reason: 'unreachable',
  status: 502,
  detail: 'The service cannot be reached.',
  isOfService: true,
  mayRetry: true,
}
const garbled: Failure = {
  reason: 'unreadable',
  status: 502,
  detail: 'The service gave no answer that can be read.',
  isOfService: true,
  mayRetry: false,
}
const overflowing: Failure = {
  ...garbled,
  detail: 'The headers of the service are more than limits.responseHeaders allows.',
}
const late: Failure = {
  reason: 'timeout',
  status: 504,
  detail: 'The service did not answer in time.',
  isOfService: true,
  mayRetry: false,
}
/** A caller must not be able to have the address left alone. */
const unwilling: Failure = {
  reason: 'unwilling',
  status: 502,
  detail: 'The service does not take this call as it is.',
  isOfService: false,
  isOfCaller: true,
  mayRetry: false,
}
const unsendable: Failure = {
  reason: 'unsendable',
  status: 400,
  detail: 'This call cannot be passed on as it is.',
  isOfService: false,
  isOfCaller: true,
  mayRetry: false,
}
/** The service has refused or failed too many calls, so fewer are sent. */
export const throttled: Failure = {
  reason: 'overload',
  status: 503,
  detail: 'The service is in trouble and gets fewer calls for now.',
  isOfService: false,
  mayRetry: false,
  type: 'urn:diana:problem:overload',
}
const tooLarge: Failure = {
  reason: 'too-large',
  status: 413,
  detail: 'The body of this call is too large.',
  isOfService: false,
  isOfCaller: true,
  mayRetry: false,
}
/** All connections to the service are in use, and so is the queue for them. */
export const busy: Failure = {
  reason: 'busy',
  status: 503,
  detail: 'All connections to the service are in use; try again later.',
  isOfService: false,
  mayRetry: false,
}

/** Words a failure for an operator: the text for the caller, and what to do if that is known. */
export function adviceOn({ detail }: Failure, error: Error): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' && message.includes('connect')) {
    return `${detail} It should listen on a Unix socket, and there is no socket at this path: start it, or check the path.`
  }
  if (code === 'EACCES' && message.includes('connect')) {
    return `${detail} This user may not use its Unix socket: give the user the right to write to it.`
  }
  if (code === 'DIANA_HTTP2_GARBLED') {
    return `${detail} It was sent HTTP/2: if it speaks HTTP/1.1, write protocol: http1 in its route.`
  }
  return detail
}

/** The body of a call turned out larger than it may be. */
export class BodyTooLarge extends Error {}

/** The time is over that the caller gives for the whole call. */
export class DeadlinePassed extends Error {
  readonly code = 'DIANA_DEADLINE'
}

/** A connection was not made, and no error said so. */
export class ConnectOverdue extends Error {
  readonly code = 'UND_ERR_CONNECT_TIMEOUT'
}

/** A service has answered, and the call is tried elsewhere all the same. */
export class AnswerNotTaken extends Error {
  readonly code = 'DIANA_ANSWER_NOT_TAKEN'
}

const byCode: Readonly<Record<string, Failure>> = {
  UND_ERR_CONNECT_TIMEOUT: { ...late, mayRetry: true },
  DIANA_ANSWER_NOT_TAKEN: { ...garbled, isOfService: false },
  UND_ERR_HEADERS_TIMEOUT: late,
  UND_ERR_BODY_TIMEOUT: late,
  UND_ERR_HEADERS_OVERFLOW: overflowing,
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: garbled,
  UND_ERR_INVALID_ARG: unsendable,
  DIANA_DEADLINE: {
    ...late,
    reason: 'deadline',
    detail: 'The deadline of this call has passed.',
    isOfService: false,
    isOfCaller: true,
  },
  DIANA_HTTP2_REFUSED: { ...unreachable, isUnprocessed: true },
  DIANA_HTTP2_GARBLED: garbled,
  DIANA_HTTP2_UNWILLING: unwilling,
  UND_ERR_REQ_CONTENT_LENGTH_MISMATCH: unsendable,
}

/** Says what an error on the way to a service means; `hasAnswered` if the service had begun to say something. */
export function failureOf(error: Error, hasAnswered = false): Failure {
  if (error instanceof BodyTooLarge) return tooLarge
  const code = String((error as NodeJS.ErrnoException).code ?? '')
  if (code.startsWith('HPE_') || code.startsWith('ERR_INVALID_CHAR') || code.startsWith('ERR_HTTP')) return garbled
  return byCode[code] ?? (hasAnswered ? garbled : unreachable)
}

/** An answer of a service broke off after it had begun. */
export class AnswerBroken extends Error {
  readonly failure: Failure

  constructor(cause: Error) {
    super(cause.message, { cause })
    this.failure = failureOf(cause, true)
  }
}
