import { type ClientRequest, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Socket } from 'node:net'
import type { CallReply, CallRequest } from '../http/call.ts'
import { paceOf } from '../inbound/calls/call-pace.ts'
import { type BulkQueue, bulkBytes } from '../inbound/connections/bulk-queue.ts'
import { upgradeOf } from '../inbound/connections/turns.ts'
import { sendProblem } from '../inbound/problem.ts'
import type { Route } from '../services/routes/route.ts'
import type { SlotUser } from '../services/slots.ts'
import type { Upstream } from '../services/upstream.ts'
import { type CallRecord, recordOf } from '../telemetry/call-record.ts'
import { adviceOn, busy, ConnectOverdue, failureOf } from './failure.ts'
import { type ForwarderParts, Tries } from './forwarding.ts'
import {
  type AnswerHead,
  type Exchange,
  headersToCaller,
  headersToService,
  reasonFor,
} from './headers/end-to-end-headers.ts'
import { keepsDictionary, relayMessages } from './messages/message-relay.ts'

const endingMs = 1000

/** Connections that turned into WebSockets. */
export class Tunnels {
  readonly #open = new Set<Tunnel>()

  open(request: CallRequest, reply: CallReply, route: Route, parts: ForwarderParts): void {
    const tunnel = new Tunnel(request, reply, route, parts, () => this.#open.delete(tunnel))
    this.#open.add(tunnel)
    tunnel.begin()
  }

  get size(): number {
    return this.#open.size
  }

  close(): void {
    for (const tunnel of this.#open) tunnel.destroy()
  }
}

/** One WebSocket: asked of a service, then bytes both ways until one side ends. */
class Tunnel implements SlotUser {
  readonly #request: CallRequest
  readonly #reply: CallReply
  readonly #route: Route
  readonly #parts: ForwarderParts
  readonly #onEnd: () => void
  readonly #tries: Tries
  readonly #near: Socket
  readonly #record: CallRecord | undefined
  #asked: ClientRequest | undefined
  #far: Socket | undefined

  constructor(request: CallRequest, reply: CallReply, route: Route, parts: ForwarderParts, onEnd: () => void) {
    this.#request = request
    this.#reply = reply
    this.#route = route
    this.#parts = parts
    this.#onEnd = onEnd
    this.#record = recordOf(request.raw)
    this.#tries = new Tries(request, route, parts.trust)
    this.#near = upgradeOf(request.raw)!.socket
  }

  get #upstream(): Upstream {
    return this.#tries.upstream
  }

  begin(): void {
    if (this.#reply.raw.destroyed || this.#near.destroyed) {
      // the caller has left while the call was judged, so that nothing would release a slot
      this.#record?.observer?.unserved()
      this.#reply.hijack()
      this.#onEnd()
      return
    }
    // the answer that declines it is over, or the connection is
    this.#reply.raw.once('close', () => this.#close())
    this.#queue()
  }

  destroy(): void {
    this.#near.destroy()
  }

  onSlot(): void {
    const { connectMs, headersMs } = this.#route.settings.timeouts
    this.#record?.sent(this.#upstream, performance.now())
    const asked = this.#ask()
    this.#asked = asked
    let timer = setTimeout(() => asked.destroy(new ConnectOverdue('no connection was made in time')), connectMs)
    asked.on('close', () => clearTimeout(timer))
    // bytes that are written now are sent once the socket is connected
    asked.once('socket', socket =>
      socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
        this.#tries.send()
        clearTimeout(timer)
        const late = Object.assign(new Error('no answer'), { code: 'UND_ERR_HEADERS_TIMEOUT' })
        timer = setTimeout(() => asked.destroy(late), headersMs)
      }),
    )
    // one that was given up for another says nothing more
    asked.on('error', error => {
      if (asked === this.#asked) this.#fail(error)
    })
    asked.on('response', answer => {
      clearTimeout(timer)
      this.#hear(answer)
    })
    asked.on('upgrade', (answer, far, head) => {
      clearTimeout(timer)
      this.#join(answer, far as Socket, head)
    })
    asked.end()
  }

  onNoSlot(): void {
    if (this.#tries.moveToRoom()) {
      this.#upstream.slots.take(this)
      return
    }
    this.#reply.header('retry-after', '1').header('connection', 'close')
    this.#record?.failed(busy)
    sendProblem(this.#reply, busy.status, busy.detail)
  }

  stalledMs(): number {
    return paceOf(this.#request.raw)?.stalledMs ?? 0
  }

  evict(): void {
    this.destroy()
  }

  #ask(): ClientRequest {
    const { url } = this.#upstream
    const headers = headersToService(this.#request, this.#route, this.#parts.trust)
    this.#record?.trace?.tellService(headers)
    if (!this.#route.keepsHost) headers.push('host', url.host)
    headers.push('connection', 'Upgrade', 'upgrade', 'websocket')
    this.#upstream.health.begin(performance.now())
    const send = url.protocol === 'https:' ? requestHttps : requestHttp
    const path = this.#route.targetAt(this.#upstream, this.#request.url)
    return send(url, {
      ...{ method: 'GET', path, headers: headers as readonly string[], agent: false, setHost: false },
      ...this.#upstream.connect,
      ...this.#upstream.tls?.options,
      ...(this.#upstream.serverName === undefined ? {} : { servername: this.#upstream.serverName }),
    })
  }

  #headersOf(answer: IncomingMessage): string[] {
    const headers = headersToCaller(headOf(answer), this.#reply.getHeaders(), this.#exchange())
    const cookie = this.#tries.cookie()
    return cookie === undefined ? headers : [...headers, 'set-cookie', cookie]
  }

  #exchange(): Exchange {
    return { route: this.#route, upstream: this.#upstream, host: this.#request.headers.host }
  }

  #fail(error: Error): void {
    if (this.#reply.sent || this.#near.destroyed) return
    const failure = failureOf(error)
    if (failure.isOfService) this.#upstream.health.fail(performance.now(), error.message)
    if (failure.mayRetry && this.#triesAgain({ mayStay: true, why: error })) return
    this.#record?.tryEnded(performance.now(), error)
    if (failure.isOfService)
      this.#request.log.warn({ err: error, service: this.#upstream.name }, adviceOn(failure, error))
    this.#reply.header('connection', 'close')
    this.#record?.failed(failure)
    sendProblem(this.#reply, failure.status, failure.detail)
  }

  /** True if the request for the WebSocket may be repeated, since it is a GET without a body. */
  #triesAgain({ mayStay, why }: { mayStay: boolean; why: Error }): boolean {
    const next = this.#tries.again({ hasBody: false, isUnprocessed: false, mayStay })
    if (next === undefined) return false
    this.#asked = undefined
    this.#record?.tryEnded(performance.now(), why)
    this.#upstream.slots.release(this)
    this.#tries.move(next)
    this.#queue()
    return true
  }

  #queue(): void {
    this.#record?.queued(performance.now())
    this.#upstream.slots.take(this)
  }

  /** Takes an answer other than 101; if its status is a failure of the address, another address may accept. */
  #hear(answer: IncomingMessage): void {
    const { statusCode = 502 } = answer
    if (!this.#route.settings.health.failStatuses.includes(statusCode)) {
      this.#upstream.health.succeed(performance.now())
      this.#decline(answer)
      return
    }
    const why = `status ${statusCode}`
    this.#upstream.health.fail(performance.now(), why)
    if (!this.#triesAgain({ mayStay: false, why: new Error(why) })) this.#decline(answer)
    else answer.destroy()
  }

  /** Passes the answer of the service on, and closes the connection, which has no further use. */
  #decline(answer: IncomingMessage): void {
    this.#record?.firstByte(answer.statusCode ?? 502, performance.now())
    const { raw } = this.#reply
    const headers = this.#headersOf(answer)
    answer.on('error', () => {
      this.#record?.broken()
      raw.destroy()
    })
    answer.setTimeout(this.#route.settings.timeouts.bodyMs, () => raw.destroy())
    this.#reply.hijack()
    this.#record?.relayed(name => textOf(answer.headers[name]))
    if (begin(raw, answer, [...headers, 'connection', 'close'])) answer.pipe(raw)
    else this.destroy()
  }

  #join(answer: IncomingMessage, far: Socket, farHead: Buffer): void {
    const near = this.#near
    this.#far = far
    this.#upstream.health.succeed(performance.now())
    // either side may break at any moment, and both end then
    far.on('error', () => near.destroy())
    far.once('close', () => this.#endSoon(near))
    if (near.destroyed) {
      far.destroy()
      return
    }
    const headers = this.#headersOf(answer)
    this.#reply.hijack()
    this.#record?.firstByte(101, performance.now())
    this.#record?.relayed(() => undefined)
    this.#record?.answered(101)
    const lines = [...headers, 'connection', 'Upgrade', 'upgrade', 'websocket']
      .map((text, at) => (at % 2 === 0 ? `${text}: ` : `${text}\r\n`))
      .join('')
    near.write(`HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`, 'latin1')
    if (farHead.length > 0) near.write(farHead)
    const early = upgradeOf(this.#request.raw)!.early.take()
    const messages = this.#parts.messagesOf(this.#request)
    if (messages === undefined) {
      if (early.length > 0) far.write(early)
      relay(near, far, this.#parts.bulk)
      relay(far, near, this.#parts.bulk)
    } else {
      relayMessages(near, far, {
        ...{ limits: messages, bulk: this.#parts.bulk, early, farHead },
        keepsDictionary: keepsDictionary(textOf(answer.headers['sec-websocket-extensions'])),
        onError: error => this.#request.log.error({ err: error }, 'a message could not be judged, and has passed'),
      })
    }
    // sockets stay open one way after the other has ended, which no WebSocket needs for long
    near.once('end', () => this.#endSoon(near))
    far.once('end', () => this.#endSoon(near))
  }

  /** Ends a socket once what is on its way has arrived. */
  #endSoon(socket: Socket): void {
    socket.end()
    setTimeout(() => socket.destroy(), endingMs).unref()
  }

  #close(): void {
    this.#asked?.destroy()
    if (this.#far) this.#endSoon(this.#far)
    this.#upstream.slots.release(this)
    this.#onEnd()
  }
}

function headOf({ statusCode = 502, rawHeaders }: IncomingMessage): AnswerHead {
  return { status: statusCode, received: rawHeaders.map((text, at) => (at % 2 === 0 ? text.toLowerCase() : text)) }
}

/** Writes the head of an answer; returns false if the service's headers cannot be written. */
function begin(raw: ServerResponse, answer: IncomingMessage, headers: string[]): boolean {
  const status = answer.statusCode ?? 502
  try {
    raw.writeHead(status, reasonFor(status, answer.statusMessage ?? ''), headers)
    return true
  } catch {
    return false
  }
}

function textOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}

/** Sends what one socket receives to another, as fast as the other takes it and as the turns of the event loop allow. */
function relay(from: Socket, to: Socket, bulk: BulkQueue): void {
  let bytes = 0
  const resume = (): void => void from.resume()
  from.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    const hasRoom = to.write(chunk)
    if (hasRoom && bytes < bulkBytes) return
    from.pause()
    bytes = 0
    if (hasRoom) bulk.join(resume)
    else to.once('drain', () => bulk.join(resume))
  })
  from.on('end', () => to.end())
  // the stream may have been paused until the other one was there
  resume()
}
