import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is served when the calls before it on the same connection have been answered. */
type Serve = () => void

interface Connection {
  /** The call under way, if any. */
  current: ServerResponse | undefined
  readonly waiting: Serve[]
}

const maxPipelined = 500

/**
 * Serves the calls of one connection one after another, in the order they came. A caller may send many at once
 * (pipelining); without turns each of them would hold a connection to a service, and an upgrade would take the socket away
 * from an answer that is still being written. Calls that wait for their turn cost nothing and are dropped with the socket. The
 * socket is read all the while, since only a socket that is read tells that its caller has left.
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
    if (connection.current === undefined) serve()
    else this.#wait(socket, connection, serve)
  }

  /** The answer that is being given on a connection. */
  current(socket: Socket): ServerResponse | undefined {
    return this.#connections.get(socket)?.current
  }

  #of(socket: Socket): Connection {
    const known = this.#connections.get(socket)
    if (known) return known
    const connection: Connection = { current: undefined, waiting: [] }
    this.#connections.set(socket, connection)
    socket.once('close', () => {
      connection.waiting.length = 0
      const { current } = connection
      // Node tells only the answer that has the socket
      if (current !== undefined && current.socket !== socket && !current.closed) current.emit('close')
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
  }

  #begin(socket: Socket, connection: Connection, response: ServerResponse, serve: Serve): void {
    connection.current = response
    response.once('close', () => {
      connection.current = undefined
      // nothing can be answered any more once the socket has ended
      if (socket.destroyed || socket.writableEnded) return
      connection.waiting.shift()?.()
    })
    serve()
  }
}
