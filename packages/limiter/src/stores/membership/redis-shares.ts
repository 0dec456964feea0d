import { evaluate, scriptOf } from '../redis/script/evaluate-script.ts'
import { claimShare } from '../redis/script/generated.ts'
import type { SendCommand } from '../redis/send-command.ts'
import { UnreadableReply } from '../store-error.ts'
import { type ShareClaim, type ShareGrant, SILENT_PART } from './shares.ts'

const CLAIM = scriptOf(`local SILENT_PART = ${SILENT_PART}\n${claimShare}`)

/** The shares of all processes that count in one Redis under one prefix. */
export class RedisShares {
  readonly #send: SendCommand
  readonly #keys: readonly string[]
  readonly #now: (() => number) | undefined

  /** `name` is that of the fleet; `now` is for tests, in milliseconds; default: the clock of Redis. */
  constructor(send: SendCommand, options: { readonly name: string; readonly now?: (() => number) | undefined }) {
    this.#send = send
    this.#keys = ['heard', 'seats', 'sizes', 'notes'].map(name => `${options.name}:share:${name}`)
    this.#now = options.now
  }

  async claim(id: string, claim: ShareClaim): Promise<ShareGrant | undefined> {
    const { sequence, seat, size, leastSize, mayGrow, memberMs } = claim
    const numbers = [sequence, seat, size, leastSize, mayGrow ? 1 : 0, memberMs]
    const reply = await evaluate(this.#send, CLAIM, this.#keys, [
      id,
      ...numbers.map(String),
      String(this.#now?.() ?? ''),
    ])
    const answer = Array.isArray(reply) ? reply.map(Number) : [Number.NaN]
    if (answer.length === 0) return undefined
    if (answer.length !== 3 || !answer.every(Number.isInteger)) {
      throw new UnreadableReply('a share', reply)
    }
    return { seat: answer[0]!, size: answer[1]!, isGranted: answer[2] === 1 }
  }

  /** How many processes take part. */
  async count(): Promise<number> {
    return Number(await this.#send(['ZCARD', this.#keys[0]!]))
  }

  async leave(id: string): Promise<void> {
    const [heard, seats, sizes, notes] = this.#keys as [string, string, string, string]
    // the last heartbeat last: whatever stays behind goes with it when it is too old
    await this.#send(['ZREM', sizes, id])
    await this.#send(['ZREM', seats, id])
    await this.#send(['HDEL', notes, id])
    await this.#send(['ZREM', heard, id])
  }
}
