import type { Limiter, Verdict } from 'diana-limiter'
import { decideWithin } from '../calls/decide-within.ts'
import { endUnreported } from '../calls/end-unreported.ts'
import type { Peers } from '../calls/peers.ts'
import { proxiedCall } from '../calls/proxied-call.ts'
import type { UnaryMethod } from '../grpc/grpc-method.ts'
import { type CheckRequest, readCheckRequest } from './check-request.ts'
import { writeBadRequest, writeCheckResponse } from './check-response.ts'

export interface AuthorizationParts {
  readonly limiter: Limiter
  readonly peers: Peers
  /** A call that would wait longer than this is refused. */
  readonly deadlineMs: () => number
}

/** Serves Envoy's external authorization, version 3, which the Gateway API of Kubernetes has as well. */
export function authorizationService({ limiter, peers, deadlineMs }: AuthorizationParts): UnaryMethod {
  return {
    kind: 'unary',
    path: '/envoy.service.auth.v3.Authorization/Check',
    refusal: writeBadRequest,
    answer: (message, context) => {
      const { peer } = context
      const request = readCheckRequest(message)
      const call = proxiedCall({
        ...request,
        target: request.path,
        ip: addressOf(request, peers, peer),
        ...extras(request),
      })
      if (typeof call === 'string') return writeBadRequest(call)
      const verdict = decideWithin(limiter, call, { waitMs: deadlineMs(), signal: () => context.signal() })
      return verdict instanceof Promise ? verdict.then(respond) : respond(verdict)
    },
  }
}

function respond(verdict: Verdict): Buffer {
  endUnreported(verdict)
  return writeCheckResponse(verdict, Date.now())
}

/** Returns the address of a request's caller; the proxy's caller may be a proxy that is trusted as well. */
function addressOf({ source, headers }: CheckRequest, peers: Peers, peer: string | undefined): string | undefined {
  return peers.callerOf(peer, source, headers[peers.document.forwardedBy])
}

function extras({ extensions }: CheckRequest): { readonly attributes?: Readonly<Record<string, string>> } {
  for (const _ in extensions) return { attributes: extensions }
  return {}
}
