import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { announceEnd, canAnnounceEnd } from './shutdown-notice.ts'

/** Resets beyond those that time and answered calls make up for, before a connection is ended. */
const mostResets = 500
/** Resets before a proxy is asked for another connection; some hundred more may come in the same read. */
const mostOfProxy = 300
/** Resets before the connection of a proxy takes no further calls, also if the proxy has not read the request. Node then counts no more. */
const lastOfProxy = 600
/**
 * Above the number of calls that a browser cancels in a second when its user leaves one page after the other. Both bounds are below those
 * of Node itself, which ends a connection with all its calls after 1000 resets, of which it forgives 33 a second.
 */
const forgivenPerSecond = 30
/** The time until a proxy has read that it shall open another connection. */
const renewMs = 1000

/** Options of a server that turn off the bound of Node, which cannot distinguish proxies from callers; from Node 22.10 on. */
export const withoutResetBound: { readonly streamResetBurst: number; readonly streamResetRate: number } = {
  streamResetBurst: 2 ** 31 - 1,
  streamResetRate: 2 ** 31 - 1,
}

/** Counts how many streams a caller has reset, against its calls that were answered and against time. */
export class ResetBudget {
  #resets = 0
  #at: number

  constructor(nowMs: number) {
    this.#at = nowMs
  }

  /** Counts a stream that was answered to its end. */
  answered(): void {
    this.#resets = Math.max(0, this.#resets - 1)
  }

  /** Counts a stream that was reset; returns how many were that nothing makes up for. */
  reset(nowMs: number): number {
    const forgiven = ((nowMs - this.#at) / 1000) * forgivenPerSecond
    this.#at = nowMs
    this.#resets = Math.max(0, this.#resets - forgiven) + 1
    return this.#resets
  }
}

const resetHere = new WeakSet<ServerHttp2Stream>()

/** Resets a stream from this side, which is not counted against its caller. */
export function resetStream(stream: ServerHttp2Stream, code: number): void {
  resetHere.add(stream)
  stream.close(code)
}

/** True if nothing can be sent on a stream any more: Node throws if one tries. */
export function isOver(stream: ServerHttp2Stream): boolean {
  return stream.destroyed || stream.closed
}

/** True if the caller has reset a stream that is over; with the code NO_ERROR only if it was not answered to its end. */
function isReset(stream: ServerHttp2Stream): boolean {
  return (stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR) && !resetHere.has(stream)
}

/**
 * Ends a connection whose caller opens streams and resets them, again and again (CVE-2023-44487): each costs it two frames, and this
 * process a whole call. A caller that cancels some of its calls keeps its connection.
 */
export function boundResets(session: ServerHttp2Session, now: () => number = () => performance.now()): void {
  const budget = new ResetBudget(now())
  onStreamEnd(session, stream => {
    if (!isReset(stream)) budget.answered()
    else if (budget.reset(now()) > mostResets) {
      // not now: Node may be reading the frames of this session, and aborts the process if the session is gone behind them
      setImmediate(() => {
        if (!session.destroyed) session.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM as never)
      })
    }
  })
}

/**
 * Asks a proxy for another connection before Node ends this one because of resets. A proxy passes on the resets of all its callers, so
 * the calls under way end as usual; those that come until the proxy has read the request too.
 */
export function renewAfterResets(
  session: ServerHttp2Session,
  socket: Socket,
  now: () => number = () => performance.now(),
): void {
  const budget = new ResetBudget(now())
  let isAsked = false
  const close = (): void => {
    if (!session.destroyed) session.close()
  }
  onStreamEnd(session, stream => {
    if (session.closed || !isReset(stream)) return
    const resets = budget.reset(now())
    // not now, for the reason above
    if (resets > lastOfProxy) setImmediate(close)
    if (isAsked || resets <= mostOfProxy) return
    isAsked = true
    announceEnd(session, socket)
    setTimeout(close, canAnnounceEnd(socket) ? renewMs : 0).unref()
  })
}

function onStreamEnd(session: ServerHttp2Session, listen: (stream: ServerHttp2Stream) => void): void {
  session.on('stream', stream => {
    // one that is reset in the same read as it was opened is over before it is reported
    if (isOver(stream)) listen(stream)
    else stream.once('close', () => listen(stream))
  })
}
