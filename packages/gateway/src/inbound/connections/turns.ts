import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** What is served when the calls before it on the same connection have been answered. */
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
 * socket is read all the while, since only a socket that is read tells that its caller has left.
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

  /** The answer that is being given on a connection. */
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
      // Node tells only the answer that has the socket
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

/** One listener for all answers, which is called with the answer that is over. */
function endTurn(this: ServerResponse & Connected): void {
  const connection = this[connectionOf]!
  if (connection.current !== this) return
  connection.current = undefined
  const { socket, waiting } = connection
  // nothing can be answered any more once the socket has ended
  if (socket.destroyed || socket.writableEnded) return
  waiting.shift()?.()
}
