import { randomBytes } from 'node:crypto'
import { FORMAT } from '../redis/counter.ts'
import { evaluate, scriptOf } from '../redis/script/evaluate-script.ts'
import { attend } from '../redis/script/generated.ts'
import type { SendCommand } from '../redis/send-command.ts'
import { UnreadableReply } from '../store-error.ts'
import { RedisShares } from './redis-shares.ts'
import type { Membership, MembershipRegistry, SignOfLife } from './registry.ts'
import type { ShareClaim, ShareGrant } from './shares.ts'

/** The name of the members of all processes that count under a prefix. */
export function fleetName(prefix: string): string {
  return `${prefix}:d2{fleet}`
}

const KEPT_MS = 86_400_000

const ATTEND = scriptOf(attend)

/** Gets how many members count in another format, in keys of other names, and how many there are in all. */
export type ApartListener = (apart: number, size: number) => void

/** The members of all processes that count in one Redis under one prefix. */
export class RedisRegistry implements MembershipRegistry {
  readonly #send: SendCommand
  readonly #keys: readonly string[]
  readonly #id = `${FORMAT}:${randomBytes(8).toString('hex')}`
  readonly #onApart: ApartListener | undefined
  readonly #shares: RedisShares

  /** `name` is what the names of its keys begin with; braces in it keep them in one slot. */
  constructor(send: SendCommand, name: string, onApart?: ApartListener) {
    this.#send = send
    this.#onApart = onApart
    this.#keys = [`${name}:heard`, `${name}:back`, `${name}:ids`, `${name}:era`]
    this.#shares = new RedisShares(send, { name })
  }

  async register({ isBack, withinMs, memberMs }: SignOfLife): Promise<Membership> {
    const era = randomBytes(8).toString('hex')
    const args = [this.#id, String(Math.ceil(withinMs)), String(memberMs), era, String(KEPT_MS), isBack ? '1' : '0']
    const reply = await evaluate(this.#send, ATTEND, this.#keys, args)
    const [mark, ...numbers] = Array.isArray(reply) ? reply : []
    const [size, rank, heard, back, apart] = numbers.map(Number)
    if (typeof mark !== 'string' || ![size, rank, heard, back, apart].every(Number.isInteger)) {
      throw new UnreadableReply('who is there', reply)
    }
    if (apart! > 0) this.#onApart?.(apart!, size!)
    return { era: mark, size: size!, rank: rank!, heard: heard!, back: back! }
  }

  async era(): Promise<string | undefined> {
    const era = await this.#send(['GET', this.#keys[3]!]).catch(error => {
      // a key of another type is not ours, and the next registration replaces it
      if (!String(error).includes('WRONGTYPE')) throw error
    })
    return typeof era === 'string' ? era : undefined
  }

  async share(claim: ShareClaim): Promise<ShareGrant | undefined> {
    return await this.#shares.claim(this.#id, claim)
  }

  /** How many processes take part. */
  async count(): Promise<number> {
    return await this.#shares.count()
  }

  async leave(): Promise<void> {
    await this.#shares.leave(this.#id)
    // the heartbeat last: an id that stays behind goes with it when it is too old
    for (const key of this.#keys.slice(0, 3).reverse()) await this.#send(['ZREM', key, this.#id])
  }
}
