import type { Socket } from 'node:net'
import { visitAll } from 'diana-limiter/gateway'
import { type Dispatcher, errors } from 'undici'
import { readWholeAnswer, type WholeAnswer } from './whole-answer.ts'

/** A call that takes an answer in one piece. */
export interface WholeAnswerHandler extends Dispatcher.DispatchHandler {
  onWholeAnswer(answer: WholeAnswer): void
}

type Options = Dispatcher.DispatchOptions

/** One connection as an exchange uses it. */
export interface ExchangeConnection {
  readonly socket: Socket
  /** Writes to the socket, past what is done for undici. */
  readonly write: (head: string, encoding: 'latin1') => boolean
  /** Passes on to undici what the socket has received. */
  readonly push: (piece: Buffer | null) => boolean
}

export interface ShortExchangeParts {
  /** The value of Host for calls that bring none. */
  readonly host: string
  /** Has undici do the call; the request has been sent, so what undici writes first is dropped. */
  readonly dispatch: (options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => void
  readonly maxHeadBytes: number | undefined
}

/**
 * - queued: the call is sent at the end of this turn of the event loop
 * - sent: its answer is awaited
 * - handed over: undici does the call, and has yet to write the request that was sent
 */
type State = 'idle' | 'queued' | 'sent' | 'handed over'

/** The time after which undici, which has timers, waits for the answer. */
const shortMs = 1000
const minTimeoutMs = 2 * shortMs
/** The number of calls that go to undici at once after an answer of another form: the next answers are likely to have it, too. */
const skippedCalls = 64

let queue: ShortExchange[] = []

/** The connection ended after the call was sent. */
class ConnectionLost extends Error {
  // that of undici's own errors would make undici connect and send again
  readonly code = 'ECONNRESET'
}

/**
 * Does the most common kind of call on a connection that undici has opened: one without a body, whose answer arrives in one
 * piece. It writes the request and reads the answer itself, for a fraction of what undici needs. Everything else is handed over
 * to undici: calls of another kind at once; and with what has arrived, calls whose answer turns out to be of another form, that
 * take longer than a second, or whose connection ends.
 */
export class ShortExchange {
  readonly #parts: ShortExchangeParts
  #state: State = 'idle'
  #connection: ExchangeConnection | undefined
  #options: Options | undefined
  #handler: WholeAnswerHandler | undefined
  #head = ''
  #sentAt = 0
  #held: (Buffer | null)[] = []
  #skip = 0
  #failure: Error | undefined
  #onIdle: (() => void) | undefined

  constructor(parts: ShortExchangeParts) {
    this.#parts = parts
  }

  /** Works on a connection from now on. */
  attach(connection: ExchangeConnection): void {
    this.#connection = connection
    connection.socket.once('close', () => {
      if (this.#connection === connection) this.#onClose(connection)
    })
  }

  /** Begins a call; false if it is one for undici. */
  begin(options: Options, handler: Dispatcher.DispatchHandler): boolean {
    const { method, path, headers } = options
    if (this.#state !== 'idle' || !isOpen(this.#connection) || !isShort(options) || !takesWhole(handler)) return false
    if (this.#skip > 0) {
      this.#skip--
      return false
    }
    const head = requestHead({ method, path, headers: headers as readonly string[] }, this.#parts.host)
    if (head === undefined) return false
    this.#state = 'queued'
    this.#options = options
    this.#handler = handler
    this.#head = head
    // bytes that no call asked for may have arrived: those of this turn are read first, and end the connection
    if (queue.push(this) === 1) setImmediate(sendQueue)
    return true
  }

  /** Sends the call that was begun. */
  send(): void {
    const connection = this.#connection
    if (this.#state !== 'queued') return
    if (!isOpen(connection)) {
      const { options, handler } = this.#finish()
      this.#parts.dispatch(options, handler)
      return
    }
    this.#state = 'sent'
    this.#sentAt = performance.now()
    this.#handler!.onConnect?.(this.#abort)
    if (this.#state === ('sent' as State)) connection.write(this.#head, 'latin1')
  }

  /** Gives up a call that cannot be sent. */
  drop(): void {
    this.#abort(new ConnectionLost('the call could not be sent'))
  }

  /** True if what a connection has received, or its end, is taken here. */
  take(piece: Buffer | null): boolean {
    if (this.#state === 'sent') this.#read(piece)
    else if (this.#state === 'handed over' || this.#held.length > 0) this.#held.push(piece)
    else return false
    return true
  }

  /** True if a write of undici is dropped, since the request has been sent. */
  drops(): boolean {
    if (this.#state !== 'handed over') return false
    this.#finish()
    process.nextTick(() => {
      for (const piece of this.#held.splice(0)) this.#connection?.push(piece)
    })
    return true
  }

  /** Returns why undici must not open another connection: it would send a call again that was sent before. */
  lost(): Error | undefined {
    if (this.#state !== 'handed over') return undefined
    const failure = this.#failure ?? new ConnectionLost('the service closed the connection')
    this.#finish()
    this.#held = []
    return failure
  }

  /** Hands over a call that takes long; called now and then. */
  check(now: number): void {
    if (this.#state === 'sent' && now - this.#sentAt > shortMs) this.#handOver(now)
  }

  /** Resolves when no call is under way here. */
  async settled(): Promise<void> {
    if (this.#state !== 'idle') await new Promise<void>(resolve => (this.#onIdle = resolve))
  }

  #read(piece: Buffer | null): void {
    const answer = piece === null ? undefined : readWholeAnswer(piece, this.#parts.maxHeadBytes)
    if (answer !== undefined) {
      const { handler } = this.#finish()
      handler.onWholeAnswer(answer)
      return
    }
    this.#skip = skippedCalls
    this.#held.push(piece)
    if (piece !== null) this.#handler!.onResponseStarted?.()
    this.#handOver(performance.now())
  }

  #handOver(now: number): void {
    const { headersTimeout } = this.#options!
    const leftMs = headersTimeout ? Math.max(1, headersTimeout - (now - this.#sentAt)) : 0
    this.#state = 'handed over'
    this.#parts.dispatch({ ...this.#options!, headersTimeout: leftMs }, this.#handler!)
  }

  #onClose({ socket }: ExchangeConnection): void {
    this.#connection = undefined
    this.#onIdle?.()
    if (this.#state !== 'sent') return
    const { handler } = this.#finish()
    handler.onError?.(socket.errored ?? new ConnectionLost('the service closed the connection'))
  }

  readonly #abort = (error: Error = new errors.RequestAbortedError()): void => {
    const socket = this.#connection?.socket
    if (this.#state === 'handed over') {
      // undici notices that the connection is gone, and gets the reason
      this.#failure = error
      socket?.destroy()
    } else if (this.#state === 'sent') {
      const { handler } = this.#finish()
      handler.onError?.(error)
      socket?.destroy()
    }
  }

  #finish(): { options: Options; handler: WholeAnswerHandler } {
    const options = this.#options!
    const handler = this.#handler!
    this.#state = 'idle'
    this.#options = undefined
    this.#handler = undefined
    this.#failure = undefined
    this.#onIdle?.()
    return { options, handler }
  }
}

/** Sends all calls of one turn of the event loop. */
function sendQueue(): void {
  const exchanges = queue
  queue = []
  visitAll(
    'calls to services',
    exchanges,
    exchange => exchange.send(),
    exchange => exchange.drop(),
  )
}

function isOpen(connection: ExchangeConnection | undefined): connection is ExchangeConnection {
  if (connection === undefined) return false
  const { socket } = connection
  return !socket.destroyed && socket.writable && socket.readableLength === 0
}

/** True if undici is not needed for it from the beginning. */
function isShort({ body, headers, headersTimeout }: Options): boolean {
  return body === null && Array.isArray(headers) && (headersTimeout === 0 || headersTimeout! >= minTimeoutMs)
}

function takesWhole(handler: Dispatcher.DispatchHandler): handler is WholeAnswerHandler {
  return 'onWholeAnswer' in handler
}

/** The parts of a request's head. */
export interface RequestHead {
  readonly method: string
  readonly path: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
}

/** Methods whose calls without a body are sent without Content-Length. */
const bodiless: readonly string[] = ['GET', 'OPTIONS', 'DELETE']
const invalidInPath = /[^\u0021-\u00ff]/
const invalidInName = /[^a-z\d-]/
const invalidInValue = /[^\t\u0020-\u007e\u0080-\u00ff]/

/**
 * Returns the head of a request without a body as undici writes it, whose connection is kept; undefined if undici has to decide
 * about it. `host` stands in for a Host that the headers do not have.
 */
export function requestHead({ method, path, headers }: RequestHead, host: string): string | undefined {
  if (!bodiless.includes(method) || path.charCodeAt(0) !== 0x2f || invalidInPath.test(path)) return undefined
  let hostInHeaders: string | undefined
  let lines = ''
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at]!
    const value = headers[at + 1]!
    if (isForUndici(name) || invalidInName.test(name) || invalidInValue.test(value)) return undefined
    if (name !== 'host') lines += `${name}: ${value}\r\n`
    else if (hostInHeaders === undefined) hostInHeaders = value
    else return undefined
  }
  return `${method} ${path} HTTP/1.1\r\nhost: ${hostInHeaders ?? host}\r\nconnection: keep-alive\r\n${lines}\r\n`
}

/** True if a header decides about the body or the connection. */
function isForUndici(name: string): boolean {
  switch (name) {
    case 'connection':
    case 'content-length':
    case 'expect':
    case 'keep-alive':
    case 'trailer':
    case 'transfer-encoding':
    case 'upgrade':
      return true
    default:
      return false
  }
}
