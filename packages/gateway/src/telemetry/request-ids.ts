import type { CallReply, CallRequest } from '../http/call.ts'
import { recordOf } from './call-record.ts'
import { randomHex } from './tracing/trace-context.ts'

/** What identifies a request may be as long as this, and of these characters only. */
const acceptable = /^[\w.:=+/@-]{1,128}$/

/** An id that no other request has: 16 random bytes, as nginx makes them. A counter would show how many calls there are. */
export function createRequestId(): string {
  return randomHex(16)
}

/** Whether an id that a trusted proxy has given can be used. */
export function isRequestId(value: string | string[] | undefined): value is string {
  return typeof value === 'string' && acceptable.test(value)
}

/** Adds the id of a request to the headers of its answer. */
export function tellRequestId({ raw }: Pick<CallRequest, 'raw'>, reply: CallReply): void {
  const record = recordOf(raw)
  if (record !== undefined) reply.header('x-request-id', record.requestId)
}
