import type { IncomingMessage } from 'node:http'
import type { Limiter } from '../limiter.ts'
import type { Verdict } from '../verdict.ts'
import {
  type CommonMessageOptions,
  type MessageDecider,
  messageDeciders,
  REASON,
  TRY_AGAIN_LATER,
} from './decide-message.ts'

export type MessageOptions = CommonMessageOptions

/** A WebSocket of the package `ws`, as far as it is needed here. */
export interface MessageSocket {
  emit(event: string | symbol, ...args: unknown[]): boolean
  once(event: 'close', listener: () => void): unknown
  pause(): void
  resume(): void
  close(code?: number, reason?: string): void
}

/**
 * Limits the messages of connections of the package `ws`: `server.on('connection', limitMessages(limiter))`, before other listeners of
 * the connection. Messages that must wait are delivered later, in their order.
 */
export function limitMessages(
  limiter: Limiter,
  options: MessageOptions = {},
): (socket: MessageSocket, request: IncomingMessage) => void {
  const deciderOf = messageDeciders(limiter, options)
  return (socket, request) => new LimitedSocket(socket, deciderOf(request)).begin()
}

/** One connection: what it emits passes here first. */
class LimitedSocket {
  readonly #socket: MessageSocket
  readonly #decider: MessageDecider
  readonly #emit: MessageSocket['emit']
  /** Messages that came before the socket was paused, behind one that waits. */
  readonly #held: unknown[][] = []
  #isWaiting = false
  #isClosed = false
  #gone: AbortController | undefined
  readonly #signal = (): AbortSignal => {
    this.#gone ??= new AbortController()
    return this.#gone.signal
  }

  constructor(socket: MessageSocket, decider: MessageDecider) {
    this.#socket = socket
    this.#decider = decider
    this.#emit = socket.emit
  }

  begin(): void {
    const socket = this.#socket
    socket.emit = (event, ...args) => {
      if (event === 'message') return this.#take(args)
      return this.#emit.call(socket, event, ...args)
    }
    socket.once('close', () => {
      this.#isClosed = true
      this.#held.length = 0
      this.#gone?.abort()
    })
  }

  #take(args: unknown[]): boolean {
    if (this.#isClosed) return false
    if (this.#isWaiting) {
      this.#held.push(args)
      return true
    }
    const verdict = this.#decider.decide(this.#signal)
    if (verdict instanceof Promise) this.#wait(verdict, args)
    else this.#follow(verdict, args)
    return true
  }

  #follow(verdict: Verdict, args: unknown[]): void {
    if (verdict.allowed) {
      if (verdict.holds) verdict.end({ failed: false })
      this.#emit.call(this.#socket, 'message', ...args)
      return
    }
    if (this.#decider.drops(verdict)) return
    this.#isClosed = true
    this.#held.length = 0
    this.#socket.close(TRY_AGAIN_LATER, REASON)
  }

  #wait(verdict: Promise<Verdict>, args: unknown[]): void {
    this.#isWaiting = true
    this.#socket.pause()
    verdict
      .then(
        decided => this.#follow(decided, args),
        error => {
          if (!this.#isClosed) this.#emit.call(this.#socket, 'error', error)
        },
      )
      .finally(() => this.#goOn())
      .catch(error => this.#emit.call(this.#socket, 'error', error))
  }

  #goOn(): void {
    this.#isWaiting = false
    while (this.#held.length > 0 && !this.#isWaiting && !this.#isClosed) this.#take(this.#held.shift()!)
    // also after it is closed, or the close frame of the other side is never read
    if (!this.#isWaiting) this.#socket.resume()
  }
}
