import { randomBytes } from 'node:crypto'
import type { SendCommand } from './redis.ts'
import { RedisShares } from './redis-shares.ts'
import type { Attendance, Roll, Sign } from './roll.ts'
import type { ShareClaim, ShareGrant } from './shares.ts'

const KEPT_MS = 86_400_000

/**
 * One hash, so one slot of a Cluster: when each process was last heard of, by the clock of Redis, negative while it is not
 * back; and the era, a mark that is made once and is another one when Redis has lost its memory.
 */
const ATTEND = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, withinMs, memberMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local known = redis.call('HGETALL', KEYS[1])
local era, size, rank, heard, back, gone = ARGV[4], 1, 0, 1, 0, {}
local isBack = ARGV[6] == '1'
if isBack then back = 1 end
local isNew = true
for i = 1, #known, 2 do
  local field, at = known[i], tonumber(known[i + 1])
  if field == 'era' then
    era, isNew = known[i + 1], false
  elseif not at or now - math.abs(at) > memberMs then
    gone[#gone + 1] = field
  elseif field ~= id then
    size = size + 1
    if field < id then rank = rank + 1 end
    if now - math.abs(at) <= withinMs then
      heard = heard + 1
      if at > 0 then back = back + 1 end
    end
  end
end
for i = 1, math.min(#gone, 1000) do redis.call('HDEL', KEYS[1], gone[i]) end
if isNew then redis.call('HSET', KEYS[1], 'era', era) end
redis.call('HSET', KEYS[1], id, string.format('%.0f', isBack and now or -now))
redis.call('PEXPIRE', KEYS[1], ARGV[5])
return { era, size, rank, heard, back }`

/** The roll of all processes that count in one Redis under one prefix. */
export class RedisRoll implements Roll {
  readonly #send: SendCommand
  readonly #key: string
  readonly #id = randomBytes(8).toString('hex')
  readonly #shares: RedisShares

  constructor(send: SendCommand, options: { readonly prefix?: string | undefined } = {}) {
    this.#send = send
    const prefix = options.prefix ?? 'diana'
    this.#key = `${prefix}:d1:fleet`
    this.#shares = new RedisShares(send, { prefix })
  }

  async attend({ isBack, withinMs, memberMs }: Sign): Promise<Attendance> {
    const era = randomBytes(8).toString('hex')
    const args = [this.#id, String(Math.ceil(withinMs)), String(memberMs), era, String(KEPT_MS), isBack ? '1' : '0']
    const reply = await this.#send(['EVAL', ATTEND, '1', this.#key, ...args])
    const [mark, ...numbers] = Array.isArray(reply) ? reply : []
    const [size, rank, heard, back] = numbers.map(Number)
    if (typeof mark !== 'string' || ![size, rank, heard, back].every(Number.isInteger)) {
      throw new Error(`the script answered something other than who is there: ${String(reply).slice(0, 100)}`)
    }
    return { era: mark, size: size!, rank: rank!, heard: heard!, back: back! }
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
    await this.#send(['HDEL', this.#key, this.#id])
  }
}
