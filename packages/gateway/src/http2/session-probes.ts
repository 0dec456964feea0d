import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

type CallerSocket = Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null }

interface Probed {
  readonly socket: CallerSocket
  /** How much had been read when the session was last looked at. */
  bytesSeen: number
  /** How much had been read when the session was last known to be alive. */
  bytesProbed: number
}

const checkMs = 400

/**
 * Ends the sessions that nghttp2 has terminated. After an error of the connection it sends GOAWAY and reads nothing any more,
 * and of most errors Node reports nothing, not even that the caller has left: its calls would go on for as long as the service
 * answers. A terminated session can be told by a PING, which it does not send. A session is probed once, when it turns quiet
 * after bytes have come; one that is quiet stays unprobed, so that a caller is not woken up again and again.
 */
export class SessionProbes {
  readonly #sessions = new Map<ServerHttp2Session, Probed>()
  #timer: NodeJS.Timeout | undefined

  add(session: ServerHttp2Session, socket: Socket): void {
    this.#sessions.set(session, { socket, bytesSeen: -1, bytesProbed: -1 })
    session.once('close', () => this.#remove(session))
    this.#timer ??= setInterval(() => this.#check(), checkMs).unref()
  }

  #remove(session: ServerHttp2Session): void {
    this.#sessions.delete(session)
    if (this.#sessions.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    for (const [session, probed] of this.#sessions) {
      const { bytesRead } = probed.socket
      if (session.destroyed || bytesRead === probed.bytesProbed) continue
      // a terminated session reads nothing
      if (bytesRead !== probed.bytesSeen) probed.bytesSeen = bytesRead
      // while bytes wait for the caller, a PING could not be sent
      else if (!probed.socket._handle?.writeQueueSize) probe(session, probed)
    }
  }
}

function probe(session: ServerHttp2Session, probed: Probed): void {
  const { socket } = probed
  const { bytesWritten } = socket
  probed.bytesProbed = socket.bytesRead
  const isAsked = session.ping(error => {
    // the answer of the caller is no reason to ask again
    if (error === null) probed.bytesProbed = socket.bytesRead
  })
  // Node sends it in a turn of its own
  setImmediate(() =>
    setImmediate(() => {
      // Node does not ask if ten PINGs (its bound) are unanswered, which no caller of HTTP/2 leaves
      if (!session.destroyed && (!isAsked || socket.bytesWritten === bytesWritten)) session.destroy()
    }),
  )
}
