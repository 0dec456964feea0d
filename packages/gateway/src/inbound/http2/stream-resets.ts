import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'

/** Resets beyond those that time and answered calls make up for, before a connection is ended. */
const mostResets = 500
/** More than a caller cancels in a second that leaves one page after the other; Node itself stops reading at 33 a second. */
const forgivenPerSecond = 30

/** Counts how many streams a caller has reset, against its calls that were answered and against time. */
export class ResetBudget {
  #resets = 0
  #at: number

  constructor(nowMs: number) {
    this.#at = nowMs
  }

  /** A stream was answered to its end. */
  answered(): void {
    this.#resets = Math.max(0, this.#resets - 1)
  }

  /** A stream was reset; returns whether these are too many. */
  reset(nowMs: number): boolean {
    const forgiven = ((nowMs - this.#at) / 1000) * forgivenPerSecond
    this.#at = nowMs
    this.#resets = Math.max(0, this.#resets - forgiven) + 1
    return this.#resets > mostResets
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
  let isEnding = false
  const onEnd = (stream: ServerHttp2Stream): void => {
    if (isEnding) return
    if (!isReset(stream)) budget.answered()
    else if (budget.reset(now())) {
      isEnding = true
      // not now: Node may be reading the frames of this session, and aborts the process if the session is gone behind them
      setImmediate(() => {
        if (!session.destroyed) session.destroy(constants.NGHTTP2_ENHANCE_YOUR_CALM as never)
      })
    }
  }
  session.on('stream', stream => {
    // one that is reset in the same read as it was opened is over before it is reported
    if (isOver(stream)) onEnd(stream)
    else stream.once('close', () => onEnd(stream))
  })
}
