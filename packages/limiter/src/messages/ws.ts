import type { IncomingMessage } from 'node:http'
import type { Limiter } from '../limiter.ts'
import {
  type CommonMessageOptions,
  type MessageDecider,
  type MessageDecision,
  type MessageSource,
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
  readonly #decide: MessageDecider
  readonly #emit: MessageSocket['emit']
  /** Messages that came before the socket was paused, behind one that waits. */
  readonly #held: unknown[][] = []
  #isWaiting = false
  #isClosed = false
  #gone: AbortController | undefined
  readonly #source: MessageSource = {
    signal: () => {
      this.#gone ??= new AbortController()
      return this.#gone.signal
    },
    isGone: () => this.#isClosed,
  }

  constructor(socket: MessageSocket, decide: MessageDecider) {
    this.#socket = socket
    this.#decide = decide
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
    const decision = this.#decide(this.#source)
    if (decision instanceof Promise) this.#wait(decision, args)
    else this.#follow(decision, args)
    return true
  }

  #follow({ message }: MessageDecision, args: unknown[]): void {
    if (message === 'passes') {
      if (!this.#isClosed) this.#emit.call(this.#socket, 'message', ...args)
    } else if (message === 'closes the connection') {
      this.#isClosed = true
      this.#held.length = 0
      this.#socket.close(TRY_AGAIN_LATER, REASON)
    }
  }

  #wait(decision: Promise<MessageDecision>, args: unknown[]): void {
    this.#isWaiting = true
    this.#socket.pause()
    void decision.then(decided => {
      this.#deliver(() => this.#follow(decided, args))
      this.#isWaiting = false
      while (this.#held.length > 0 && !this.#isWaiting && !this.#isClosed) {
        const held = this.#held.shift()!
        this.#deliver(() => this.#take(held))
      }
      // also after it is closed, or the close frame of the other side is never read
      if (!this.#isWaiting) this.#socket.resume()
    })
  }

  /** Delivers a message that has waited: a listener of the application that throws keeps back none of those behind it. */
  #deliver(deliver: () => void): void {
    try {
      deliver()
    } catch (error) {
      // as an error of a listener that nothing has caught, which it is
      queueMicrotask(() => {
        throw error
      })
    }
  }
}
