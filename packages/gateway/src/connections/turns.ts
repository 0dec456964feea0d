import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is served when the calls before it on the same connection have been answered. */
type Serve = () => void

interface Connection {
  /** The call under way, if any. */
  current: ServerResponse | undefined
  readonly waiting: Serve[]
  /** Whether something other than calls comes next, which reads the socket itself. */
  isTakenOver: boolean
}

const maxPipelined = 500

/**
 * Serves the calls of one connection one after another, in the order they came. A caller may send many at once
 * (pipelining); without turns each of them would hold a connection to a service, and an upgrade would take the socket away
 * from an answer that is still being written. Calls that wait for their turn cost nothing and are dropped with the socket.
 */
export class Turns {
  readonly #connections = new WeakMap<Socket, Connection>()

  /** Serves a call as soon as it is its turn; `response` is the answer that ends the turn. */
  take(socket: Socket, response: ServerResponse, serve: Serve): void {
    const connection = this.#of(socket)
    if (connection.current === undefined) this.#begin(socket, connection, response, serve)
    else this.#wait(socket, connection, () => this.#begin(socket, connection, response, serve))
  }

  /** Runs something that takes the whole connection over: what comes behind it is not read as calls. */
  takeOver(socket: Socket, serve: Serve): void {
    const connection = this.#of(socket)
    const begin = (): void => {
      connection.isTakenOver = false
      serve()
    }
    connection.isTakenOver = true
    if (connection.current === undefined) begin()
    else this.#wait(socket, connection, begin)
  }

  /** The answer that is being given on a connection. */
  current(socket: Socket): ServerResponse | undefined {
    return this.#connections.get(socket)?.current
  }

  #of(socket: Socket): Connection {
    const known = this.#connections.get(socket)
    if (known) return known
    const connection: Connection = { current: undefined, waiting: [], isTakenOver: false }
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      connection.waiting.length = 0
    })
    return connection
  }

  #wait(socket: Socket, connection: Connection, serve: Serve): void {
    const { waiting } = connection
    if (waiting.length >= maxPipelined) {
      socket.destroy()
      return
    }
    waiting.push(serve)
    // not within the parser: an upgrade may come in the same piece, after which Node would not read on
    if (waiting.length === 1) process.nextTick(() => this.#pause(socket, connection))
  }

  /** What has been parsed is kept; more is read when that has been served. */
  #pause(socket: Socket, { waiting, isTakenOver }: Connection): void {
    if (waiting.length > 0 && !isTakenOver) socket.pause()
  }

  #begin(socket: Socket, connection: Connection, response: ServerResponse, serve: Serve): void {
    connection.current = response
    response.once('close', () => {
      connection.current = undefined
      if (socket.destroyed) return
      const next = connection.waiting.shift()
      if (next) next()
      if (connection.waiting.length === 0 && !connection.isTakenOver) socket.resume()
    })
    serve()
  }
}
