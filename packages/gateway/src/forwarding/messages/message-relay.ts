import type { Socket } from 'node:net'
import type { Verdict } from 'diana-limiter'
import type { MessageLimits } from '../../http/message-limits.ts'
import { type BulkQueue, bulkBytes } from '../../inbound/connections/bulk-queue.ts'
import {
  beginsMessage,
  CLOSE,
  closeFrame,
  FIRST_CONTROL,
  type FrameHead,
  FrameReader,
  type FrameSink,
} from './frame-reader.ts'

export interface MessageRelayOptions {
  readonly limits: MessageLimits
  readonly bulk: BulkQueue
  /** The bytes that have arrived from the caller already. */
  readonly early: Buffer
  /** The bytes that have arrived from the service already, and were passed on. */
  readonly farHead: Buffer
  /** True if compressed messages refer to earlier ones, so that none may be left out. */
  readonly keepsDictionary: boolean
  onError(error: unknown): void
}

/** Status 1013 of a close frame: try again later. */
const TRY_AGAIN_LATER = 1013
const GOING_AWAY = 1001
const REASON = 'too many messages'
/** The most bytes that are read behind a message that waits, to find pings among them. */
const MOST_HELD = 65_536
const CLOSING_MS = 1000
/** The longest payload of a control frame (RFC 6455, section 5.5). */
const LONGEST_CONTROL = 125

/** Relays a WebSocket, both ways, and lets limits decide each message of the caller. */
export function relayMessages(near: Socket, far: Socket, options: MessageRelayOptions): void {
  new MessageRelay(near, far, options).begin()
}

/** True if the compression that was agreed on remembers messages of the client (RFC 7692, section 7.1.1.2). */
export function keepsDictionary(extensions: string | undefined): boolean {
  if (extensions === undefined || !/permessage-deflate/i.test(extensions)) return false
  return !/client_no_context_takeover/i.test(extensions)
}

/** A piece that waits its turn: the head of a frame, or bytes of its payload. */
interface Held {
  readonly head: FrameHead | undefined
  readonly bytes: Buffer
}

/**
 * The messages of the caller pass in order. While one waits for its moment, those behind it are held, up to a bound, beyond which the
 * socket is not read; pings and pongs among them pass at once. Frames are passed on as they came, with their masks.
 */
class MessageRelay implements FrameSink {
  readonly #near: Socket
  readonly #far: Socket
  readonly #options: MessageRelayOptions
  readonly #fromCaller = new FrameReader()
  readonly #fromService = new FrameReader()
  readonly #held: Held[] = []
  #heldBytes = 0
  /** A message waits for its moment. */
  #isWaiting = false
  #isDropping = false
  #isClosed = false
  /** True once the caller is asked to leave when the frame that is being sent to them has ended. */
  #isLeaving = false
  /** The bytes of a ping or a pong that has not come whole. */
  #control: Buffer[] | undefined
  #controlBytes = 0
  #gone: AbortController | undefined
  #sinceTurn = 0
  readonly #resume = (): void => {
    if (!this.#isClosed) this.#near.resume()
  }

  constructor(near: Socket, far: Socket, options: MessageRelayOptions) {
    this.#near = near
    this.#far = far
    this.#options = options
  }

  begin(): void {
    const near = this.#near
    const far = this.#far
    if (this.#options.farHead.length > 0) this.#fromService.read(this.#options.farHead, ignore)
    near.on('data', (chunk: Buffer) => this.#read(chunk))
    near.on('end', () => {
      if (!this.#isWaiting) far.end()
    })
    near.once('close', () => {
      this.#isClosed = true
      this.#gone?.abort()
    })
    far.on('data', (chunk: Buffer) => this.#relayBack(chunk))
    far.on('end', () => near.end())
    if (this.#options.early.length > 0) this.#read(this.#options.early)
    near.resume()
    far.resume()
  }

  onHead(head: FrameHead, bytes: Buffer): void {
    const isPing = head.opcode >= FIRST_CONTROL && head.opcode !== CLOSE
    if (isPing) {
      this.#control = [bytes]
      this.#controlBytes = 0
    } else this.#take({ head, bytes })
  }

  onPayload(bytes: Buffer): void {
    if (this.#control === undefined) this.#take({ head: undefined, bytes })
    else {
      this.#controlBytes += bytes.length
      if (this.#controlBytes > LONGEST_CONTROL) this.#close()
      else this.#control.push(bytes)
    }
  }

  onEnd(): void {
    if (this.#control === undefined) return
    // frames before it are passed on whole, or wait whole, so that it comes between two of them
    this.#write(Buffer.concat(this.#control))
    this.#control = undefined
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return
    this.#far.cork()
    this.#fromCaller.read(chunk, this)
    const hasRoom = !this.#far.writableNeedDrain
    this.#far.uncork()
    this.#sinceTurn += chunk.length
    if (this.#heldBytes > MOST_HELD) this.#near.pause()
    else if (!hasRoom) {
      this.#near.pause()
      this.#sinceTurn = 0
      this.#far.once('drain', () => this.#options.bulk.join(this.#resume))
    } else if (this.#sinceTurn >= bulkBytes) {
      this.#near.pause()
      this.#sinceTurn = 0
      this.#options.bulk.join(this.#resume)
    }
  }

  /** Passes a piece on, or keeps it behind a message that waits. */
  #take(piece: Held): void {
    if (!this.#isWaiting) {
      this.#decide(piece)
      return
    }
    this.#held.push(piece)
    this.#heldBytes += piece.bytes.length
  }

  #decide(piece: Held): void {
    if (this.#isClosed) return
    const { head } = piece
    if (head !== undefined && beginsMessage(head)) {
      let verdict: Verdict | Promise<Verdict>
      try {
        verdict = this.#options.limits.decide(() => this.#signal())
      } catch (error) {
        this.#options.onError(error)
        this.#pass(piece)
        return
      }
      if (verdict instanceof Promise) {
        this.#wait(verdict, piece)
        return
      }
      this.#follow(verdict, piece)
      return
    }
    if (head !== undefined && head.opcode === CLOSE) this.#isDropping = false
    if (!this.#isDropping) this.#write(piece.bytes)
  }

  #wait(verdict: Promise<Verdict>, piece: Held): void {
    this.#isWaiting = true
    verdict
      .then(
        decided => this.#follow(decided, piece),
        error => {
          // the caller has left, or the message cannot be judged
          if (this.#isClosed) return
          this.#options.onError(error)
          this.#pass(piece)
        },
      )
      .then(() => this.#goOn())
  }

  #follow(verdict: Verdict, piece: Held): void {
    if (verdict.allowed) {
      if (verdict.holds) verdict.end({ failed: false })
      this.#pass(piece)
      return
    }
    const mayDrop = !(this.#options.keepsDictionary && piece.head?.isCompressed === true)
    if (mayDrop && this.#options.limits.drops(verdict.rule)) this.#isDropping = true
    else this.#close()
  }

  #pass({ bytes }: Held): void {
    this.#isDropping = false
    this.#write(bytes)
  }

  /** Decides the held messages after a message has passed, until one of them must wait. */
  #goOn(): void {
    this.#isWaiting = false
    let done = 0
    while (done < this.#held.length && !this.#isWaiting && !this.#isClosed) {
      const piece = this.#held[done++]!
      this.#heldBytes -= piece.bytes.length
      this.#decide(piece)
    }
    this.#held.splice(0, done)
    if (this.#isClosed || this.#isWaiting) return
    if (this.#near.readableEnded) this.#far.end()
    else if (this.#far.writableNeedDrain) this.#far.once('drain', this.#resume)
    else this.#resume()
  }

  #write(bytes: Buffer): void {
    if (!this.#isClosed) this.#far.write(bytes)
  }

  #relayBack(chunk: Buffer): void {
    if (this.#isLeaving) {
      this.#leaveAfter(chunk)
      return
    }
    this.#fromService.read(chunk, ignore)
    this.#writeBack(chunk)
  }

  #writeBack(bytes: Buffer): void {
    if (this.#near.write(bytes)) return
    this.#far.pause()
    this.#near.once('drain', () => this.#far.resume())
  }

  /** Closes both sides: the caller may come again later. */
  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#held.length = 0
    this.#heldBytes = 0
    // later bytes of the caller are read and dropped, so that the close frame is not lost by a reset
    this.#near.resume()
    // the service has not seen the head of the refused message, so its last message is complete
    this.#far.write(closeFrame(GOING_AWAY, REASON, true))
    this.#far.end()
    if (this.#fromService.isBetweenFrames) this.#leave()
    else this.#isLeaving = true
    setTimeout(() => this.#near.destroy(), CLOSING_MS).unref()
    setTimeout(() => this.#far.destroy(), CLOSING_MS).unref()
  }

  /** Sends the rest of the frame that was begun, and then the close frame. */
  #leaveAfter(chunk: Buffer): void {
    if (this.#near.writableEnded) return
    this.#writeBack(chunk.subarray(0, this.#fromService.readFrame(chunk, ignore)))
    if (this.#fromService.isBetweenFrames) this.#leave()
  }

  #leave(): void {
    this.#isLeaving = true
    this.#near.end(closeFrame(TRY_AGAIN_LATER, REASON, false))
  }

  #signal(): AbortSignal {
    this.#gone ??= new AbortController()
    return this.#gone.signal
  }
}

const ignore: FrameSink = { onHead: () => {}, onPayload: () => {}, onEnd: () => {} }
