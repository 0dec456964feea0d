import type { CallReply, CallRequest } from '../http/call.ts'
import { hasBody } from '../http/message-headers.ts'
import { calledPath } from '../http/normalize-request.ts'
import { upgradeOf } from '../inbound/connections/turns.ts'
import { sendProblem } from '../inbound/problem.ts'
import type { Route } from '../services/routes/route.ts'
import { recordOf } from '../telemetry/call-record.ts'
import { type ForwarderParts, Forwarding } from './forwarding.ts'
import { Tunnels } from './tunnels.ts'

/** Sends calls on to services. */
export class Forwarder {
  readonly #parts: ForwarderParts
  readonly #tunnels = new Tunnels()

  constructor(parts: ForwarderParts) {
    this.#parts = parts
  }

  /** The handler of every call that has passed Diana and the filters. */
  readonly forward = (request: CallRequest, reply: CallReply): void => {
    const refusal = this.#faultIn(request)
    if (refusal) {
      sendProblem(reply, ...refusal)
      return
    }
    if (request.url === '*') {
      // OPTIONS * asks about the server itself (RFC 9110, section 9.3.7), and this one has nothing to add
      reply.code(204).send()
      return
    }
    const route = this.#routeOf(request)
    const record = recordOf(request.raw)
    if (record) record.route = route
    if (route === undefined) sendProblem(reply, 404, 'The gateway forwards no such call.')
    else if (hasLongBody(request, route)) sendProblem(reply, 413, 'The body of this call is too large.')
    else if (route.ownAnswer) route.ownAnswer(request.url, reply)
    else if (upgradeOf(request.raw)) this.#tunnels.open(request, reply, route, this.#parts)
    else new Forwarding(request, reply, route, this.#parts).begin()
  }

  /** Ends connections that have no end of their own. */
  closeTunnels(): void {
    this.#tunnels.close()
  }

  /** Counts the tunnels. */
  get tunnels(): number {
    return this.#tunnels.size
  }

  #routeOf(request: CallRequest): Route | undefined {
    return this.#parts.routes.find(calledPath(request.url), request)
  }

  #faultIn({ raw, url, method }: CallRequest): [status: number, detail: string] | undefined {
    const { headers } = raw
    if (!url.startsWith('/') && !(url === '*' && method === 'OPTIONS')) {
      return [400, 'The target of this call is not a path.']
    }
    if (!hasBody(raw)) return undefined
    // Node has taken the last coding off, and would leave the others on without a word
    if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
      return [501, 'Of transfer codings, only chunked is understood.']
    }
    return undefined
  }
}

function hasLongBody({ headers }: CallRequest, { settings }: Route): boolean {
  return Number(headers['content-length'] ?? 0) > settings.bodyBytes
}
