import type { IncomingMessage } from 'node:http'
import { DianaError } from '../errors.ts'
import type { Limiter } from '../limiter.ts'
import { type CommonMessageOptions, type MessageDecision, messageDeciders } from './decide-message.ts'

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
    const decide = deciderOf(socket.request)
    const gone = new AbortController()
    const waiting: (() => void)[] = []
    let isWaiting = false
    let isLeaving = false
    socket.once('disconnect', () => {
      waiting.length = 0
      gone.abort()
    })
    const source = { signal: gone.signal, isGone: () => gone.signal.aborted }
    const follow = ({ message, retryAfterMs }: MessageDecision, event: unknown[], next: () => void): void => {
      if (message === 'passes') {
        if (!gone.signal.aborted) next()
        return
      }
      if (message === 'closes the connection') {
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
          retryAfterMs: Math.min(Number.MAX_SAFE_INTEGER, retryAfterMs),
        })
      }
    }
    const take = (event: unknown[], next: () => void): void => {
      const decision = decide(source)
      if (!(decision instanceof Promise)) {
        follow(decision, event, next)
        return
      }
      isWaiting = true
      void decision.then(decided => {
        follow(decided, event, next)
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
