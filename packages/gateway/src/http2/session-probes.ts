import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

type CallerSocket = Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null }

interface Probed {
  readonly socket: CallerSocket
  /** How much had been read when the session was last looked at. */
  bytesSeen: number
  /** How much had been read when the session was last known to be alive. */
  bytesProbed: number
  /** Looks until an unanswered PING is sent again; none if the last one was answered. */
  patience: number | undefined
  /** PINGs since the last answer. */
  unanswered: number
}

const checkMs = 400

/** After how many looks a PING is sent again, at first. */
const firstPatience = 2

/**
 * Ends the sessions that nghttp2 has terminated. After an error of the connection it sends GOAWAY and reads nothing any more,
 * and of most errors Node reports nothing, not even that the caller has left: its calls would go on for as long as the service
 * answers. A terminated session can be told by a PING, which it does not send. A session is probed once, when it turns quiet
 * after bytes have come, so that a quiet caller is not woken up again and again. A PING that is not answered is sent again,
 * ever more seldom: after a flood, Node may stop reading, and only by writing can it find that the caller has left.
 */
export class SessionProbes {
  readonly #sessions = new Map<ServerHttp2Session, Probed>()
  #timer: NodeJS.Timeout | undefined

  add(session: ServerHttp2Session, socket: Socket): void {
    this.#sessions.set(session, { socket, bytesSeen: -1, bytesProbed: -1, patience: undefined, unanswered: 0 })
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
      // while bytes wait for the caller, a PING could not be sent
      if (!session.destroyed && isDue(probed) && !probed.socket._handle?.writeQueueSize) probe(session, probed)
    }
  }
}

function isDue(probed: Probed): boolean {
  const { bytesRead } = probed.socket
  if (probed.patience !== undefined && probed.patience-- <= 0) return true
  if (bytesRead === probed.bytesProbed) return false
  // a terminated session reads nothing
  const isQuiet = bytesRead === probed.bytesSeen
  probed.bytesSeen = bytesRead
  return isQuiet
}

function probe(session: ServerHttp2Session, probed: Probed): void {
  const { socket } = probed
  const { bytesWritten } = socket
  probed.bytesProbed = socket.bytesRead
  probed.patience = firstPatience * 2 ** probed.unanswered++
  const isAsked = session.ping(error => {
    if (error !== null) return
    // the answer of the caller is no reason to ask again
    probed.bytesProbed = socket.bytesRead
    probed.patience = undefined
    probed.unanswered = 0
  })
  // Node sends it in a turn of its own
  setImmediate(() =>
    setImmediate(() => {
      // Node does not ask if ten PINGs (its bound) are unanswered, which no caller of HTTP/2 leaves
      if (!session.destroyed && (!isAsked || socket.bytesWritten === bytesWritten)) session.destroy()
    }),
  )
}
