import { randomBytes } from 'node:crypto'
import { evaluate, scriptOf } from '../redis/script/evaluate-script.ts'
import type { SendCommand } from '../redis/send-command.ts'
import { RedisShares } from './redis-shares.ts'
import type { Membership, MembershipRegistry, SignOfLife } from './registry.ts'
import type { ShareClaim, ShareGrant } from './shares.ts'

/** The name of the members of all processes that count under a prefix. */
export function fleetName(prefix: string): string {
  return `${prefix}:d2{fleet}`
}

const KEPT_MS = 86_400_000
/** So many members that are gone are removed by one heartbeat, so that none takes long. */
const MOST_REMOVED = 100

/**
 * The members of the fleet, in one slot of a Cluster. No command reads the whole list, so a heartbeat costs Redis the same
 * in a fleet of any size.
 *
 *   KEYS[1]  sorted set: each member with the time of its last heartbeat, by the clock of Redis
 *   KEYS[2]  sorted set: the same, of the members that are back only
 *   KEYS[3]  sorted set: each member with the score 0, hence in the order of their ids, which gives the ranks
 *   KEYS[4]  the era: created once, and another one when Redis has lost its memory
 */
const ATTEND = scriptOf(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local id, withinMs, memberMs, era, keptMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5]
local isBack = ARGV[6] == '1'
local heard, back, ids = KEYS[1], KEYS[2], KEYS[3]
local function text(ms) return string.format('%.0f', ms) end
local function add(key, score)
  local reply = redis.pcall('ZADD', key, score, id)
  if type(reply) ~= 'table' then return end
  -- a key of another type is not ours
  if not reply.err:find('WRONGTYPE', 1, true) then error(reply) end
  redis.call('UNLINK', key)
  redis.call('ZADD', key, score, id)
end

add(heard, text(now))
add(ids, 0)
add(back, text(now))
if not isBack then redis.call('ZREM', back, id) end
-- a heartbeat from the future is of a clock that has stepped back since
for _, range in ipairs({ { '-inf', text(now - memberMs - 1) }, { text(now + memberMs), '+inf' } }) do
  local gone = redis.call('ZRANGEBYSCORE', heard, range[1], range[2], 'LIMIT', 0, ${MOST_REMOVED})
  if #gone > 0 then for k = 1, 3 do redis.call('ZREM', KEYS[k], unpack(gone)) end end
end
if redis.call('ZCARD', ids) ~= redis.call('ZCARD', heard) then
  -- one of the keys was lost
  redis.call('ZUNIONSTORE', ids, 1, heard, 'WEIGHTS', 0)
end
if not redis.call('SET', KEYS[4], era, 'NX') then
  local known = redis.pcall('GET', KEYS[4])
  if type(known) == 'string' then era = known else redis.call('SET', KEYS[4], era) end
end
for k = 1, 4 do redis.call('PEXPIRE', KEYS[k], keptMs) end
local since = text(now - withinMs)
return {
  era, redis.call('ZCARD', ids), redis.call('ZRANK', ids, id),
  redis.call('ZCOUNT', heard, since, '+inf'), redis.call('ZCOUNT', back, since, '+inf'),
}`)

/** The members of all processes that count in one Redis under one prefix. */
export class RedisRegistry implements MembershipRegistry {
  readonly #send: SendCommand
  readonly #keys: readonly string[]
  readonly #id = randomBytes(8).toString('hex')
  readonly #shares: RedisShares

  /** `name` is what the names of its keys begin with; braces in it keep them in one slot. */
  constructor(send: SendCommand, name: string) {
    this.#send = send
    this.#keys = [`${name}:heard`, `${name}:back`, `${name}:ids`, `${name}:era`]
    this.#shares = new RedisShares(send, { name })
  }

  async register({ isBack, withinMs, memberMs }: SignOfLife): Promise<Membership> {
    const era = randomBytes(8).toString('hex')
    const args = [this.#id, String(Math.ceil(withinMs)), String(memberMs), era, String(KEPT_MS), isBack ? '1' : '0']
    const reply = await evaluate(this.#send, ATTEND, this.#keys, args)
    const [mark, ...numbers] = Array.isArray(reply) ? reply : []
    const [size, rank, heard, back] = numbers.map(Number)
    if (typeof mark !== 'string' || ![size, rank, heard, back].every(Number.isInteger)) {
      throw new Error(`the script answered something other than who is there: ${String(reply).slice(0, 100)}`)
    }
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
