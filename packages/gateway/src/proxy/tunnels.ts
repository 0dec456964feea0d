import { type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sendProblem } from '../problem.ts'
import type { Route } from '../routes/route.ts'
import type { Upstream } from '../upstreams/upstream.ts'
import { failureOf } from './failure.ts'
import type { ForwarderParts } from './forwarder.ts'
import { headersToCaller } from './headers-to-caller.ts'
import { headersToService } from './headers-to-service.ts'

const socketOf: unique symbol = Symbol('diana.upgradingSocket')

interface Upgrading extends IncomingMessage {
  [socketOf]?: { readonly socket: Duplex; readonly head: Buffer }
}

/** Marks a call that asks for another protocol, with the connection it came on and what followed it. */
export function markUpgrading(raw: IncomingMessage, socket: Duplex, head: Buffer): void {
  ;(raw as Upgrading)[socketOf] = { socket, head }
}

export function upgradingSocket(raw: IncomingMessage): Duplex | undefined {
  return (raw as Upgrading)[socketOf]?.socket
}

const endingMs = 1000

/** Connections that turned into WebSockets: bytes both ways until one side ends. */
export class Tunnels {
  readonly #parts: ForwarderParts
  readonly #open = new Set<Duplex>()

  constructor(parts: ForwarderParts) {
    this.#parts = parts
  }

  open(request: FastifyRequest, reply: FastifyReply, route: Route): void {
    const upstream = route.next(performance.now())
    const asked = ask(request, route, upstream, this.#parts)
    const { connectMs, headersMs } = route.settings.timeouts
    const late = Object.assign(new Error('no answer'), { code: 'UND_ERR_HEADERS_TIMEOUT' })
    const timer = setTimeout(() => asked.destroy(late), connectMs + headersMs)
    const onClose = (): void => void asked.destroy()
    reply.raw.once('close', onClose)
    asked.on('error', error => {
      clearTimeout(timer)
      if (reply.sent || reply.raw.destroyed) return
      const failure = failureOf(error)
      if (failure.isOfService) upstream.health.fail(performance.now())
      reply.header('connection', 'close')
      sendProblem(reply, failure.status, failure.detail)
    })
    asked.on('response', answer => {
      clearTimeout(timer)
      upstream.health.succeed()
      // the service would rather not: its answer is passed on, and the connection has no further use
      const headers = headersToCaller(rawHeadersOf(answer), reply.getHeaders(), route)
      reply.hijack()
      if (!begin(reply.raw, answer, [...headers, 'connection', 'close'])) return
      answer.on('error', () => reply.raw.destroy())
      answer.pipe(reply.raw)
    })
    asked.on('upgrade', (answer, far, farHead) => {
      clearTimeout(timer)
      upstream.health.succeed()
      reply.raw.off('close', onClose)
      const headers = headersToCaller(rawHeadersOf(answer), reply.getHeaders(), route)
      reply.hijack()
      this.#join(request.raw, far, farHead, [...headers, 'connection', 'Upgrade', 'upgrade', 'websocket'])
    })
    asked.end()
  }

  get size(): number {
    return this.#open.size
  }

  close(): void {
    for (const socket of this.#open) socket.destroy()
  }

  #join(raw: IncomingMessage, far: Duplex, farHead: Buffer, headers: readonly string[]): void {
    const { socket: near, head } = (raw as Upgrading)[socketOf]!
    const lines = headers.map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
    near.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`, 'latin1')
    if (farHead.length > 0) near.write(farHead)
    if (head.length > 0) far.write(head)
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#open.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        this.#open.delete(one)
        // what is on its way still arrives
        other.end()
        setTimeout(() => other.destroy(), endingMs).unref()
      })
      one.pipe(other)
    }
  }
}

function ask(request: FastifyRequest, route: Route, upstream: Upstream, { trust }: ForwarderParts) {
  const { url } = upstream
  const headers = headersToService(request, route, trust)
  if (!route.settings.keepHost) headers.push('host', url.host)
  headers.push('connection', 'Upgrade', 'upgrade', 'websocket')
  upstream.health.begin(performance.now())
  const send = url.protocol === 'https:' ? requestHttps : requestHttp
  const path = route.targetAt(upstream, request.url)
  return send(url, { method: 'GET', path, headers: headers as readonly string[], agent: false, setHost: false })
}

function rawHeadersOf(answer: IncomingMessage): Buffer[] {
  return answer.rawHeaders.map(text => Buffer.from(text, 'latin1'))
}

/** False where the service's headers cannot be said. */
function begin(raw: ServerResponse, answer: IncomingMessage, headers: string[]): boolean {
  try {
    raw.writeHead(answer.statusCode ?? 502, answer.statusMessage, headers)
    return true
  } catch {
    raw.destroy()
    return false
  }
}
