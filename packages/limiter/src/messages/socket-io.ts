import type { IncomingMessage } from 'node:http'
import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import { type CommonMessageOptions, messageDeciders } from './decide-message.ts'

/** A socket of Socket.IO's server, as far as it is needed here. */
export interface SocketIoSocket {
  readonly request: IncomingMessage
  use(middleware: (event: unknown[], next: (error?: Error) => void) => void): unknown
  once(event: 'disconnect', listener: () => void): unknown
  disconnect(close?: boolean): unknown
}

/** The most events that wait for each connection; one that sends more is disconnected. */
const MOST_WAITING = 1000

/**
 * Limits the events that clients send over Socket.IO: `io.on('connection', limitEvents(limiter))`. Events that must wait are delivered
 * later, in their order; a dropped event whose sender asked for an acknowledgement gets `{ error, retryAfterMs }`.
 */
export function limitEvents(limiter: Limiter, options: CommonMessageOptions = {}): (socket: SocketIoSocket) => void {
  const deciderOf = messageDeciders(limiter, options)
  return socket => {
    const decider = deciderOf(socket.request)
    const gone = new AbortController()
    const waiting: (() => void)[] = []
    let isWaiting = false
    let isLeaving = false
    socket.once('disconnect', () => {
      waiting.length = 0
      gone.abort()
    })
    const follow = (verdict: Verdict, event: unknown[], next: (error?: Error) => void): void => {
      if (verdict.allowed) {
        if (verdict.holds) verdict.end({ failed: false })
        next()
        return
      }
      if (!decider.drops(verdict)) {
        waiting.length = 0
        isLeaving = true
        // Socket.IO delivers the events before it in the next tick, and none to a socket that is disconnected
        setImmediate(() => socket.disconnect(true))
        return
      }
      const acknowledge = event.at(-1)
      if (typeof acknowledge === 'function') {
        acknowledge({
          error: 'too many messages',
          retryAfterMs: Math.min(Number.MAX_SAFE_INTEGER, verdict.retryAfterMs),
        })
      }
    }
    const take = (event: unknown[], next: (error?: Error) => void): void => {
      let verdict: Verdict | Promise<Verdict>
      try {
        verdict = decider.decide(gone.signal)
      } catch (error) {
        next(error as Error)
        return
      }
      if (!(verdict instanceof Promise)) {
        follow(verdict, event, next)
        return
      }
      isWaiting = true
      verdict
        .then(
          decided => follow(decided, event, next),
          error => {
            if (!gone.signal.aborted) next(error as Error)
          },
        )
        .finally(() => {
          isWaiting = false
          while (!isWaiting && waiting.length > 0) waiting.shift()!()
        })
    }
    socket.use((event, next) => {
      if (gone.signal.aborted || isLeaving) return
      if (!isWaiting) take(event, next)
      else if (waiting.length < MOST_WAITING) waiting.push(() => take(event, next))
      else {
        next(new DianaError('LIMITED', 'too many events wait'))
        socket.disconnect(true)
      }
    })
  }
}
