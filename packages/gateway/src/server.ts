import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Duplex } from 'node:stream'
import { problemText } from './problem.ts'
import { hasBody, waitToContinue } from './proxy/body.ts'
import { markUpgrading } from './proxy/tunnels.ts'
import type { GatewaySettings } from './settings/gateway-settings.ts'
import type { TlsFiles } from './tls-files.ts'

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

const headersTimeoutMs = 30_000
const keepAliveMs = 72_000

/** The HTTP server under Fastify: bounded in what it reads, with upgrades and bodies that are asked for only when needed. */
export function createGatewayServer(
  listener: RequestListener,
  { limits }: GatewaySettings,
  tls: TlsFiles | undefined,
): Server {
  const options = { maxHeaderSize: limits.headersBytes, keepAliveTimeout: keepAliveMs }
  const server: Server = tls
    ? createTlsServer({ ...options, ...tls.current, minVersion: 'TLSv1.2', ALPNProtocols: ['http/1.1'] }, listener)
    : createServer(options, listener)
  if (tls) tls.follow(pair => (server as ReturnType<typeof createTlsServer>).setSecureContext(pair))
  server.requestTimeout = limits.requestMs
  server.headersTimeout = Math.min(headersTimeoutMs, limits.requestMs)
  // Node would leave out what is beyond a number of headers; their size is bounded above
  server.maxHeadersCount = 0
  // whoever asks before he sends his body is told to only when the call is passed on
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    waitToContinue(request)
    listener(request, response)
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    upgrade(request, socket, head, listener)
  })
  return server
}

/** Sends a call that asks for another protocol through the same chain as any other. */
function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, listener: RequestListener): void {
  socket.on('error', () => socket.destroy())
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket as Parameters<ServerResponse['assignSocket']>[0])
  const isWebSocket = request.headers.upgrade?.toLowerCase() === 'websocket' && request.method === 'GET'
  // Node reads no further here, so an answer is the last on its connection
  response.on('finish', () => socket.end())
  if (hasBody(request)) {
    socket.end(problemText(400, 'A call that asks for another protocol can have no body here.'))
    return
  }
  // a server may ignore what it is offered (RFC 9110, section 7.8)
  if (isWebSocket) markUpgrading(request, socket, head)
  listener(request, response)
}
