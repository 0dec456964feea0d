import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The answer of a server to a call of a version that it does not speak. The answer is the last one on its connection. */
export interface VersionRefusal {
  call(request: IncomingMessage, response: ServerResponse): void
  /** Answers a call whose socket Node has taken out of HTTP (Upgrade, CONNECT). */
  socket(request: IncomingMessage, socket: Socket, head: Buffer): void
}

/** The answer to a version that is not spoken: status and detail. */
export const versionProblem = [505, 'Calls of this version of HTTP are not read here.'] as const

/** True if a request of Node's parser for HTTP/1 has a version that is served. */
function isServed({ httpVersion }: IncomingMessage): boolean {
  return httpVersion === '1.1' || httpVersion === '1.0'
}

/**
 * Refuses calls of every version but 1.0 and 1.1 before any listener of a server sees them. Node's parser for HTTP/1 also reads
 * lines that end with HTTP/0.9 or HTTP/2.0, and all entries of a server get such calls: plain ones, those with Expect, and those
 * that leave HTTP. Other versions reach `clientError` with the code HPE_INVALID_VERSION.
 */
export function refuseOtherVersions(server: Server, refusal: VersionRefusal): void {
  const emit = server.emit.bind(server) as (event: string | symbol, ...args: unknown[]) => boolean
  const refuse = (event: string | symbol, request: IncomingMessage, reply: unknown, head: unknown): boolean => {
    switch (event) {
      case 'request':
      case 'checkContinue':
      case 'checkExpectation':
        if (isServed(request)) return false
        refusal.call(request, reply as ServerResponse)
        return true
      case 'upgrade':
      case 'connect':
        if (isServed(request)) return false
        refusal.socket(request, reply as Socket, head as Buffer)
        return true
      default:
        return false
    }
  }
  server.emit = (event: string | symbol, ...args: unknown[]): boolean =>
    refuse(event, args[0] as IncomingMessage, args[1], args[2]) || emit(event, ...args)
}
