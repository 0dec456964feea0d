import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyBaseLogger } from 'fastify'
import type { CallReply, CallRequest } from '../../http/call.ts'
import { faultOf, isSettled, normalizeRequest } from '../../http/normalize-request.ts'
import { tellRequestId } from '../../telemetry/request-ids.ts'
import { sendProblem } from '../problem.ts'
import type { Admission } from './admission.ts'
import { PlainReply } from './plain-reply.ts'
import { PlainRequest } from './plain-request.ts'

/** What serves requests, whether Fastify is in between or not. */
export interface ListenerParts {
  readonly admission: Admission
  readonly log: () => FastifyBaseLogger
  readonly isClosing: () => boolean
  readonly serve: (request: CallRequest, reply: CallReply) => void
  readonly sendError: (error: Error, request: CallRequest, reply: CallReply) => void
}

/** Serves requests that pass no filters. Fastify's hooks, router and replies would cost more than judging a call does. */
export function plainListener(parts: ListenerParts): (raw: IncomingMessage, response: ServerResponse) => void {
  const { admission, log, isClosing, serve, sendError } = parts
  const fail = (error: unknown, request: CallRequest, reply: CallReply): void => {
    if (reply.sent) reply.raw.destroy()
    else sendError(error as Error, request, reply)
  }
  return (raw, response) => {
    raw.url = normalizeRequest(raw)
    const request = new PlainRequest(raw, log())
    const reply = new PlainReply(response)
    if (isClosing()) response.setHeader('Connection', 'close')
    if (!isSettled(raw.url)) {
      tellRequestId(request, reply)
      sendProblem(reply, 400, faultOf(raw))
      return
    }
    const onAdmitted = (error?: Error): void => {
      try {
        if (error) throw error
        serve(request, reply)
      } catch (caught) {
        fail(caught, request, reply)
      }
    }
    try {
      admission.admit(request, reply, onAdmitted)
    } catch (error) {
      fail(error, request, reply)
    }
  }
}
