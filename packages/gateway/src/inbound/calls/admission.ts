import type { Limiter } from 'diana-limiter'
import { admit, createFilter, type Filter, type Framework, httpFramework } from 'diana-limiter/filter'
import { steadyMicroseconds } from 'diana-limiter/gateway'
import { askForBody } from '../../http/body.ts'
import type { CallReply, CallRequest } from '../../http/call.ts'
import type { GatewaySettings } from '../../settings/gateway-settings.ts'
import { isWhole, nextTurn, recordOf } from '../../telemetry/call-record.ts'
import { tellRequestId } from '../../telemetry/request-ids.ts'
import { answerCors } from './cors.ts'

/** Called with an error if the request could not be judged. */
export type OnAdmitted = (error?: Error) => void

/** What every request passes first, before filters and routes: the limits. */
export class Admission {
  readonly #filter: Filter<CallRequest, CallReply>
  readonly #settings: () => GatewaySettings

  constructor(limiter: Limiter, settings: () => GatewaySettings) {
    this.#filter = createFilter(limiter, callFramework, {})
    this.#settings = settings
  }

  /** Answers the request, or calls `onAdmitted`; at once unless the request has to wait. */
  admit(request: CallRequest, reply: CallReply, onAdmitted: OnAdmitted): void {
    const { cors, answerHeaders } = this.#settings()
    tellRequestId(request, reply)
    // before any rule counts: refusals carry these headers as well
    for (const name in answerHeaders) reply.header(name, answerHeaders[name]!)
    if (cors !== undefined && answerCors(request, reply, cors)) return
    const record = recordOf(request.raw)
    if (record !== undefined) record.turn = nextTurn()
    const isAdmitted = admit(this.#filter, request, reply)
    if (isAdmitted === true) this.#pass(request, reply, onAdmitted)
    else if (isAdmitted !== false) {
      isAdmitted.then(admitted => admitted && this.#pass(request, reply, onAdmitted), onAdmitted)
    }
  }

  #pass(request: CallRequest, reply: CallReply, onAdmitted: OnAdmitted): void {
    askForBody(request.raw, reply.raw)
    onAdmitted()
  }
}

/** Replies keep names so; told them so, they need not make them again for every call. */
const inLowerCase: Readonly<Record<string, string>> = { RateLimit: 'ratelimit', 'RateLimit-Policy': 'ratelimit-policy' }

/** How rules read a request to the gateway, and how a refusal answers it. */
export const callFramework: Framework<CallRequest, CallReply> = {
  identity: request => request.raw,
  method: request => request.method,
  headers: request => request.headers,
  target: request => request.url,
  peer: request => request.raw.socket.remoteAddress,
  clientCertificate: request => httpFramework.clientCertificate?.(request.raw),
  path: request => httpFramework.path(request.raw),
  // resources are paths, since the services' routes are not known here
  template: () => undefined,
  caseInsensitive: () => true,
  isAnswered: reply => reply.sent,
  setHeader: (reply, name, value) => {
    reply.header(inLowerCase[name] ?? name, value)
  },
  refuse: (request, reply, { status, headers, body }) => {
    for (const [name, value] of headers) reply.header(name, value)
    // bytes, since Fastify adds a charset to JSON text, and JSON has none
    reply.code(status).send(Buffer.from(withRequestId(body, recordOf(request.raw)?.requestId)))
  },
  watch: (request, reply, watcher) => {
    const ended = (status: number | undefined): void => {
      const record = recordOf(request.raw)
      if (record !== undefined) {
        record.endTurn = nextTurn()
        record.endUs = steadyMicroseconds()
      }
      const outcome = record?.outcomeOf(isWhole(reply.raw))
      if (outcome === undefined) watcher.ended(status)
      else watcher.ended(outcome.status, outcome.by)
    }
    httpFramework.watch(request.raw, reply.raw, { ended })
  },
  body: (request, reply) => {
    // a caller who asks first sends the body only now
    askForBody(request.raw, reply.raw)
    return httpFramework.body!(request.raw, reply.raw)
  },
  observe: (request, _reply, observer) => {
    const record = recordOf(request.raw)
    if (record !== undefined) record.observer = observer
  },
  reportCosts: (request, costs) => {
    const record = recordOf(request.raw)
    if (record !== undefined) record.costs = costs
  },
  watchLeaving: (request, reply, left) => httpFramework.watchLeaving?.(request.raw, reply.raw, left),
  abandon: reply => {
    reply.hijack()
  },
  reportError: (request, error, what) => request.log.error({ err: error }, what),
}

/** Adds the id to a problem document of the limiter; an answer that the rule file words itself stays as it is. */
function withRequestId(body: string, id: string | undefined): string {
  if (id === undefined || !body.startsWith('{"type":"') || !body.includes('"violated-policies":[')) return body
  return `${body.slice(0, -1)},"requestId":${JSON.stringify(id)}}`
}
