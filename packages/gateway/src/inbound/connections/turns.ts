import { type IncomingMessage, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { hasBody } from '../../http/message-headers.ts'
import { EarlyBytes } from './early-bytes.ts'

/** A function that serves a call when the calls before it on the same connection have been answered. */
type Serve = () => void

type RequestListener = (request: IncomingMessage, response: ServerResponse) => void

interface Connection {
  readonly socket: Socket
  /** The call under way, if any. */
  current: ServerResponse | undefined
  readonly waiting: Serve[]
}

// on the objects themselves: a WeakMap with an entry for each call would cost the garbage collector dearly
const connectionOf: unique symbol = Symbol('diana.connection')

interface Connected {
  [connectionOf]?: Connection
}

const maxPipelined = 500

/**
 * Serves the calls of one connection one after another, in the order they came. A caller may send many at once
 * (pipelining); without turns each of them would hold a connection to a service, and an upgrade would take the socket away
 * from an answer that is still being written. Calls that wait for their turn cost nothing and are dropped with the socket. The
 * socket is read all the while, since only a socket that is read reports that its caller has left.
 */
export class Turns {
  /** Has a call served as soon as it is its turn; `response` is the answer that ends the turn. */
  take(request: IncomingMessage, response: ServerResponse, listener: RequestListener): void {
    const connection = this.#of(request.socket)
    if (connection.current === undefined) begin(connection, request, response, listener)
    else this.#wait(connection, () => begin(connection, request, response, listener))
  }

  /** Runs something that takes the whole connection over: what comes behind it is not read as calls. */
  takeOver(socket: Socket, serve: Serve): void {
    const connection = this.#of(socket)
    if (connection.current === undefined) serve()
    else this.#wait(connection, serve)
  }

  /** Returns the answer that is being given on a connection. */
  current(socket: Socket): ServerResponse | undefined {
    return (socket as Connected)[connectionOf]?.current
  }

  #of(socket: Socket & Connected): Connection {
    const known = socket[connectionOf]
    if (known) return known
    const connection: Connection = { socket, current: undefined, waiting: [] }
    socket[connectionOf] = connection
    socket.once('close', () => {
      connection.waiting.length = 0
      const { current } = connection
      // Node notifies only the answer that has the socket
      if (current !== undefined && current.socket !== socket && !current.closed) current.emit('close')
    })
    return connection
  }

  #wait({ socket, waiting }: Connection, serve: Serve): void {
    if (waiting.length >= maxPipelined) {
      socket.destroy()
      return
    }
    waiting.push(serve)
  }
}

function begin(
  connection: Connection,
  request: IncomingMessage,
  response: ServerResponse & Connected,
  listener: RequestListener,
): void {
  connection.current = response
  response[connectionOf] = connection
  response.on('close', endTurn)
  listener(request, response)
}

/** Ends the turn of the answer that is over; one listener for all answers. */
function endTurn(this: ServerResponse & Connected): void {
  const connection = this[connectionOf]!
  if (connection.current !== this) return
  connection.current = undefined
  const { socket, waiting } = connection
  // nothing can be answered any more once the socket has ended
  if (socket.destroyed || socket.writableEnded) return
  waiting.shift()?.()
}

type SocketListener = (socket: Socket) => void

/** A caller who waits for a WebSocket, as it must, sends next to nothing. */
const maxEarlyFrames = 65_536
/** Calls behind an offer that is ignored, which itself stands behind an unanswered call. */
const maxEarlyCalls = 1_048_576

const upgradeKey: unique symbol = Symbol('diana.upgrade')

/** The connection of a call that asks for a WebSocket, and the bytes that the caller sends before it is open. */
export interface Upgrade {
  readonly socket: Socket
  readonly early: EarlyBytes
}

interface Upgrading extends IncomingMessage {
  [upgradeKey]?: Upgrade
}

/** Returns undefined for a call that asks for no WebSocket. */
export function upgradeOf(raw: IncomingMessage): Upgrade | undefined {
  return (raw as Upgrading)[upgradeKey]
}

/** Headers that belong to the offer of another protocol, and go with it. */
const offer: readonly string[] = ['upgrade', 'http2-settings']

/**
 * Requests that offer another protocol. Node stops reading HTTP on such a connection before anybody has decided. A
 * WebSocket request goes on to the listener, with its socket. Every other offer is ignored, as a server may (RFC 9110,
 * section 7.8): the request is put back without the offer, and the connection is read as HTTP again.
 */
export function serveUpgrades(
  server: Server,
  turns: Turns,
  listener: RequestListener,
  readAsHttp: SocketListener,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const early = new EarlyBytes(socket, head, isWebSocket(request) ? maxEarlyFrames : maxEarlyCalls)
    keepAnswersFlowing(socket, turns)
    turns.takeOver(socket, () => {
      if (socket.destroyed) return
      // an earlier answer may have left its keep-alive timeout behind
      socket.setTimeout(0)
      if (isWebSocket(request)) openWebSocket(request, socket, early, listener)
      else {
        socket.unshift(Buffer.concat([headWithoutOffer(request), early.take()]))
        readAsHttp(socket)
        socket.resume()
      }
    })
  })
}

/** Restores what Node takes away with its parser: the listener that reports to an earlier answer that the socket has room again. */
function keepAnswersFlowing(socket: Socket, turns: Turns): void {
  const earlier = turns.current(socket)
  if (earlier === undefined) return
  const onDrain = (): boolean => earlier.emit('drain')
  socket.on('drain', onDrain)
  earlier.once('close', () => socket.off('drain', onDrain))
}

function isWebSocket(request: IncomingMessage): boolean {
  const { method, headers } = request
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(request)
}

function openWebSocket(request: IncomingMessage, socket: Socket, early: EarlyBytes, listener: RequestListener): void {
  const response = new ServerResponse(request)
  response.shouldKeepAlive = false
  response.assignSocket(socket)
  // Node reads no further here, so an answer is the last on its connection, and only this code ends it
  response.on('finish', () => {
    response.detachSocket(socket)
    response.emit('close')
    socket.destroySoon()
  })
  // the filters would read the socket of an upgrade to notice that its caller leaves, which the early bytes report already
  Object.assign(request, { upgrade: false })
  ;(request as Upgrading)[upgradeKey] = { socket, early }
  listener(request, response)
}

function headWithoutOffer({ method, url, httpVersion, rawHeaders }: IncomingMessage): Buffer {
  const lines = [`${method} ${url} HTTP/${httpVersion}`]
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    const lower = name.toLowerCase()
    if (offer.includes(lower)) continue
    const value = lower === 'connection' ? withoutOffer(rawHeaders[at + 1]!) : rawHeaders[at + 1]!
    lines.push(`${name}: ${value}`)
  }
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

function withoutOffer(connection: string): string {
  const names = connection.split(',').map(name => name.trim())
  return names.filter(name => !offer.includes(name.toLowerCase())).join(', ')
}
