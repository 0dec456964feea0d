import type { Http2Session } from 'node:http2'
import type { Socket } from 'node:net'

type SessionSocket = Socket & { readonly _handle?: { readonly writeQueueSize?: number } | null }

/** How sessions of one kind are probed. */
export interface Probe {
  /** Sends what the other side answers; false if Node refuses to. */
  ask(session: Http2Session, onAnswer: () => void): boolean
  /** Whether a probe that is not answered is sent again. */
  readonly isRepeated: boolean
  end(session: Http2Session): void
}

interface Probed {
  readonly socket: SessionSocket
  /** How much had been read when the session was last looked at. */
  bytesSeen: number
  /** How much had been read when the session was last known to be alive. */
  bytesProbed: number
  /** Looks until an unanswered probe is sent again; none if the last one was answered. */
  patience: number | undefined
  /** Probes since the last answer. */
  unanswered: number
}

const checkMs = 400

/** After how many looks a probe is sent again, at first. */
const firstPatience = 2

/**
 * Ends the sessions that nghttp2 has terminated. After an error of the connection it sends GOAWAY and reads nothing any more,
 * and of most errors Node reports nothing, not even that the other side has left: calls would go on for as long as the service
 * answers, or wait for an answer that cannot be read. A terminated session can be recognized by a frame that it does not send. A
 * session is probed once, when it turns quiet after bytes have come, so that a quiet peer is not woken up again and again.
 */
export class SessionProbes {
  readonly #probe: Probe
  readonly #sessions = new Map<Http2Session, Probed>()
  #timer: NodeJS.Timeout | undefined

  constructor(probe: Probe) {
    this.#probe = probe
  }

  add(session: Http2Session, socket: Socket): void {
    this.#sessions.set(session, { socket, bytesSeen: -1, bytesProbed: -1, patience: undefined, unanswered: 0 })
    session.once('close', () => this.#remove(session))
    this.#timer ??= setInterval(() => this.#check(), checkMs).unref()
  }

  #remove(session: Http2Session): void {
    this.#sessions.delete(session)
    if (this.#sessions.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #check(): void {
    for (const [session, probed] of this.#sessions) {
      // while bytes wait for the other side, a frame could not be sent
      if (!session.destroyed && isDue(probed) && !probed.socket._handle?.writeQueueSize) this.#ask(session, probed)
    }
  }

  #ask(session: Http2Session, probed: Probed): void {
    const { ask, isRepeated, end } = this.#probe
    if (!isRepeated && probed.unanswered > 0) return
    const { socket } = probed
    const { bytesWritten } = socket
    probed.bytesProbed = socket.bytesRead
    probed.patience = isRepeated ? firstPatience * 2 ** probed.unanswered : undefined
    probed.unanswered++
    const isAsked = ask(session, () => {
      // the answer is no reason to ask again
      probed.bytesProbed = socket.bytesRead
      probed.patience = undefined
      probed.unanswered = 0
    })
    // Node sends it in a turn of its own
    setImmediate(() =>
      setImmediate(() => {
        if (!session.destroyed && (!isAsked || socket.bytesWritten === bytesWritten)) end(session)
      }),
    )
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
