import type { Http2Session } from 'node:http2'
import type { Socket } from 'node:net'
import { attempt, type Repeated, repeat, visitAll } from 'diana-limiter/gateway'

interface Handle {
  readonly writeQueueSize?: number
  /** The handle of TCP under one of TLS. */
  readonly _parent?: Handle
}

type SessionSocket = Socket & { readonly _handle?: Handle | null }

/** The way to probe sessions of one kind. */
export interface Probe {
  /** Sends what the other side answers; false if Node refuses to. */
  ask(session: Http2Session, onAnswer: () => void): boolean
  /** True if a probe that is not answered is sent again. */
  readonly isRepeated: boolean
  end(session: Http2Session): void
}

/**
 * The probe of callers. After a flood, Node may stop reading, and only by writing can it find that the caller has left: so a PING
 * is repeated. Node refuses if ten (its bound) are unanswered, which no caller of HTTP/2 leaves.
 */
export const callerProbe: Probe = {
  ask: (session, onAnswer) => session.ping(error => error === null && onAnswer()),
  isRepeated: true,
  end: session => session.destroy(),
}

interface Probed {
  readonly socket: SessionSocket
  /** The bytes that had been read when the session was last looked at. */
  bytesSeen: number
  /** The bytes that had been read when the session was last known to be alive. */
  bytesProbed: number
  /** Looks until an unanswered probe is sent again; none if the last one was answered. */
  patience: number | undefined
  /** Probes since the last answer. */
  unanswered: number
  /** The number of looks in a row, since the last probe, that found new bytes. */
  busyLooks: number
  /** The number of looks in a row, since a probe without an answer, that found no new bytes. */
  silentLooks: number
  /** The number of streams that the other side has opened. */
  streams: number
  /** The number of looks in a row that found bytes in TLS that nothing was sending. */
  lostLooks: number
}

const checkMs = 400

/** The number of looks after which a probe is sent again, at first. */
const firstPatience = 2

/** The number of looks after which a session is probed on which bytes keep coming. */
const mostBusyLooks = 5

/**
 * After a thousand resets nghttp2 sends GOAWAY and Node reads no further, but frames are still sent: such a session can only be
 * recognized by its silence. One with fewer streams cannot be such a session, and its caller may be silent for as long as it likes.
 */
const leastStreamsOfFlood = 900
const mostSilentLooks = 12

/** One look may fall between the end of one write and the beginning of the next. */
const mostLostLooks = 2

/**
 * Ends the sessions that nghttp2 has terminated. After an error of the connection it sends GOAWAY and reads nothing any more,
 * and of most errors Node reports nothing, not even that the other side has left: calls would go on for as long as the service
 * answers, or wait for an answer that cannot be read. A terminated session can be recognized by a frame that it does not send. A
 * session is probed once, when it turns quiet after bytes have come, so that a quiet peer is not woken up again and again; and now and
 * then while bytes keep coming, which a terminated session reads only to drop them. A session over TLS also ends if a write has
 * failed of which Node reports nothing: its bytes stay in TLS, while the socket below has none to send.
 */
export class SessionProbes {
  readonly #probe: Probe
  readonly #sessions = new Map<Http2Session, Probed>()
  #repeated: Repeated | undefined

  constructor(probe: Probe) {
    this.#probe = probe
  }

  add(session: Http2Session, socket: Socket): void {
    const probed: Probed = {
      ...{ socket, bytesSeen: -1, bytesProbed: -1, patience: undefined, unanswered: 0, busyLooks: 0 },
      ...{ silentLooks: 0, streams: 0, lostLooks: 0 },
    }
    this.#sessions.set(session, probed)
    session.once('close', () => this.#remove(session))
    session.on('stream', () => probed.streams++)
    this.#repeated ??= repeat('sessions of HTTP/2', checkMs, () => this.#check())
  }

  #remove(session: Http2Session): void {
    this.#sessions.delete(session)
    if (this.#sessions.size > 0) return
    this.#repeated?.stop()
    this.#repeated = undefined
  }

  #check(): void {
    const look = ([session, probed]: [Http2Session, Probed]): void => {
      if (session.destroyed) return
      if (isFlooded(probed)) this.#probe.end(session)
      // the session itself waits for the write
      else if (hasLostWrite(probed)) probed.socket.destroy()
      // while bytes wait for the other side, a frame could not be sent
      else if (isDue(probed) && !probed.socket._handle?.writeQueueSize) this.#ask(session, probed)
    }
    visitAll('sessions of HTTP/2', this.#sessions, look, ([session, { socket }]) => {
      this.#remove(session)
      socket.destroy()
    })
  }

  #ask(session: Http2Session, probed: Probed): void {
    const { ask, isRepeated, end } = this.#probe
    if (!isRepeated && probed.unanswered > 0) return
    const { socket } = probed
    const { bytesWritten } = socket
    probed.bytesProbed = socket.bytesRead
    probed.patience = isRepeated ? firstPatience * 2 ** probed.unanswered : undefined
    probed.unanswered++
    probed.busyLooks = 0
    const isAsked = ask(session, () => {
      // the answer is no reason to ask again
      probed.bytesProbed = socket.bytesRead
      probed.patience = undefined
      probed.unanswered = 0
    })
    // Node sends it in a turn of its own
    setImmediate(() =>
      setImmediate(() => {
        if (session.destroyed || (isAsked && socket.bytesWritten !== bytesWritten)) return
        attempt('sessions of HTTP/2', () => end(session))
      }),
    )
  }
}

function isFlooded(probed: Probed): boolean {
  const isSilent = probed.unanswered > 0 && probed.socket.bytesRead === probed.bytesSeen
  probed.silentLooks = isSilent ? probed.silentLooks + 1 : 0
  return probed.streams >= leastStreamsOfFlood && probed.silentLooks >= mostSilentLooks
}

function hasLostWrite(probed: Probed): boolean {
  const { _handle } = probed.socket
  const isLost = !!_handle?.writeQueueSize && _handle._parent?.writeQueueSize === 0
  probed.lostLooks = isLost ? probed.lostLooks + 1 : 0
  return probed.lostLooks > mostLostLooks
}

function isDue(probed: Probed): boolean {
  const { bytesRead } = probed.socket
  if (probed.patience !== undefined && probed.patience-- <= 0) return true
  if (bytesRead === probed.bytesProbed) return false
  const isQuiet = bytesRead === probed.bytesSeen
  probed.bytesSeen = bytesRead
  // the answer of a peer that sends much may wait behind all that
  return isQuiet || (probed.unanswered === 0 && ++probed.busyLooks >= mostBusyLooks)
}
