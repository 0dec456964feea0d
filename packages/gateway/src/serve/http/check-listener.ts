import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Limiter } from 'diana-limiter'
import { admit, createFilter, type Filter, verdictOf } from 'diana-limiter/filter'
import type { FastifyBaseLogger } from 'fastify'
import type { CallReply, CallRequest } from '../../http/call.ts'
import { faultOf, isSettled, normalizeRequest } from '../../http/normalize-request.ts'
import { callFramework, PlainReply, PlainRequest } from '../../inbound/calls/admission.ts'
import { problemRefusal, sendProblem } from '../../inbound/problem.ts'
import { endUnreported } from '../calls/end-unreported.ts'
import type { Peers } from '../calls/peers.ts'
import { type Dialect, dialects } from './dialects.ts'
import { rememberDialect } from './unreadable-question.ts'

export interface CheckParts {
  readonly limiter: Limiter
  readonly peers: Peers
  readonly log: () => FastifyBaseLogger
  readonly isClosing: () => boolean
}

type CheckFilter = Filter<CallRequest, CallReply>

/**
 * Answers whether a request may pass, to a proxy that holds it meanwhile. The original request is put together from what the proxy
 * says, and then judged by the same code as a request to the gateway: spellings, hosts and odd headers included.
 */
export function checkListener(
  parts: CheckParts,
): (dialect: Dialect, raw: IncomingMessage, response: ServerResponse) => void {
  const filters = new Map(dialects.map(dialect => [dialect, filterFor(dialect, parts)]))
  return (dialect, raw, response) => {
    // a proxy reads the status, whatever its caller speaks: a refusal of gRPC, which is a 200, would let the call pass
    const reply = new PlainReply(response, () => undefined)
    // a body says nothing here
    raw.resume()
    rememberDialect(raw.socket, dialect)
    if (parts.isClosing()) response.setHeader('Connection', 'close')
    if (!parts.peers.mayAsk(raw.socket)) {
      sendProblem(reply, 403, 'This peer may not ask: add its address to trustProxy in the rule file.')
      return
    }
    const original = dialect.read(raw)
    if (original === undefined) {
      const names = dialect.headers.slice(0, 2).join(' and ')
      sendProblem(reply, 400, `The proxy must say which request it asks about: it sent no ${names}.`)
      return
    }
    for (const name of dialect.headers) delete raw.headers[name]
    raw.method = original.method.toUpperCase()
    raw.url = original.target
    raw.headers.host = original.host
    try {
      raw.url = normalizeRequest(raw)
      answer(filters.get(dialect)!, dialect, new PlainRequest(raw, parts.log()), reply)
    } catch (error) {
      parts.log().error({ err: error }, 'Diana failed to judge this call')
      if (!reply.sent) sendProblem(reply, 500, 'Diana failed to judge this call.')
    }
  }
}

function answer(filter: CheckFilter, dialect: Dialect, request: PlainRequest, reply: PlainReply): void {
  if (!isSettled(request.url)) {
    refuseBy(dialect, reply, { status: 400, detail: faultOf(request.raw) })
    return
  }
  const pass = (isAdmitted: boolean): void => {
    const verdict = verdictOf(request.raw)
    if (verdict !== undefined) endUnreported(verdict)
    if (isAdmitted && !reply.sent) reply.code(200).send()
  }
  const isAdmitted = admit(filter, request, reply)
  if (typeof isAdmitted === 'boolean') pass(isAdmitted)
  else isAdmitted.then(pass, () => sendProblem(reply, 500, 'Diana failed to judge this call.'))
}

function filterFor(dialect: Dialect, { limiter, peers }: CheckParts): CheckFilter {
  const framework: typeof callFramework = {
    ...callFramework,
    refuse: (request, reply, refusal) =>
      callFramework.refuse(request, reply, dialect.refusal === undefined ? refusal : dialect.refusal(refusal)),
  }
  return { ...createFilter(limiter, framework, {}), trust: peers }
}

/** Refuses a request that no rule was asked about, in the statuses of the dialect. */
function refuseBy(
  dialect: Dialect,
  reply: PlainReply,
  { status, detail }: { readonly status: number; readonly detail: string },
): void {
  const refusal = problemRefusal(status, detail)
  const { status: sent, headers, body } = dialect.refusal?.(refusal) ?? refusal
  for (const [name, value] of headers) reply.header(name, value)
  reply.code(sent).send(Buffer.from(body))
}
