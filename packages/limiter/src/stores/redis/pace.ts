import { type Curve, Smooth } from '../../algorithms/smooth.ts'
import { escapePart } from './counter.ts'
import { evaluate, scriptOf } from './script/evaluate-script.ts'
import type { SendCommand } from './send-command.ts'

/** A request for permits, with what Redis needs to know. */
export interface PaceRequest {
  readonly permits: number
  /** Permits that are there later than this are not taken. */
  readonly maxWaitUs: number
  /** Permits that this process has let pass without Redis. */
  readonly unreported: number
  /** For how long this process knows the pace to be taken, in case Redis has forgotten it; -1 if it has not used it yet. */
  readonly knownUs: number
}

export interface PaceAnswer {
  readonly isTaken: boolean
  readonly waitUs: number
  /** By the clock of Redis. */
  readonly now: number
  readonly available: number
}

/** The rate of the fleet differs from that of the request. */
export interface OtherRate {
  readonly rate: number
}

/** The key of the pace that all processes with one name and prefix share. */
export function paceKey(prefix: string, name: string): string {
  return `${prefix}:d2:pace{${escapePart(name)}}`
}

const KEPT_MS = 86_400_000
/** Redis reads no number without an end. */
const ENDLESS_US = 2 ** 52

/**
 * A pace that several processes share: one hash with the rate, the state of `Smooth` and its scale.
 *
 *   ARGV  what: announce, set, take or back; rate, and the curve that goes with it; then numbers of its own:
 *     announce   a process starts with this rate: it is the fleet's, unless the same rate was announced
 *                before and set to another one since
 *     set        from now on this is the rate of the fleet
 *     take       permits, maxWaitUs, debt, knownUs
 *     back       permits, and the moment for which they were taken
 *   reply  the rate of the fleet, now; and for take, if the request had that rate: 1 if the permits are taken, how long
 *          until they are there, and how many calls for one permit would pass at once
 */
const SCRIPT = scriptOf(`
local floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
local key, what, rate = KEYS[1], ARGV[1], ARGV[2]
local curve = cjson.decode(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local known = redis.call('HMGET', key, 'announced', 'rate', 'moment', 'owed', 'spent', 'largest', 'coolDownUs', 'at')
local fleetRate = known[2] or rate
local moves = (function()${new Smooth({ stableUs: 1, largest: 1, coolDownUs: 1, threshold: 1, floorUs: 0, slope: 0 }, 0).lua.lua}
end)()

if what == 'announce' then
  if known[1] ~= rate then fleetRate = rate end
  redis.call('HSET', key, 'announced', rate)
elseif what == 'set' then
  fleetRate = rate
elseif fleetRate ~= rate then
  return { fleetRate, string.format('%.0f', now) }
end

local isFree = curve.floorUs < curve.stableUs
local state = { now, 0, 0 }
if known[3] then
  local old, scale = { tonumber(known[3]), tonumber(known[4]), tonumber(known[5]) }, { 0, tonumber(known[6]), tonumber(known[7]) }
  -- a clock that stepped back takes the pace with it
  if known[8] and tonumber(known[8]) > now then old[1] = old[1] - (tonumber(known[8]) - now) end
  if scale[2] == curve.largest and scale[3] == curve.coolDownUs then state = old
  elseif what ~= 'announce' or fleetRate == rate then state = moves.inherit(curve, old, scale, now)
  else
    curve = nil
  end
end

local reply = { fleetRate, string.format('%.0f', now) }
if what == 'take' then
  local permits, maxWaitUs, debt = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
  local knownUs = tonumber(ARGV[7])
  -- Redis has forgotten the pace: what was saved may have been used
  if not known[3] and knownUs >= 0 then state[2], state[3] = knownUs, isFree and curve.largest or 0 end
  if debt > 0 then moves.take(curve, state, now, debt, 0) end
  local waitUs = moves.delay(curve, state, now, permits)
  local isTaken = waitUs <= maxWaitUs
  if isTaken and permits > 0 then moves.take(curve, state, now, permits, waitUs) end
  local owes = moves.delay(curve, state, now, 1) > 0
  local idleUs = max(0, now - state[1]) - state[2]
  local stored = min(curve.largest, curve.largest - state[3] + max(0, idleUs) / curve.coolDownUs)
  reply[3], reply[4] = isTaken and 1 or 0, string.format('%.0f', waitUs)
  reply[5] = owes and 0 or (isFree and floor(stored + 1e-9) + 1 or 1)
elseif what == 'back' then
  moves.refund(curve, state, now, tonumber(ARGV[4]), tonumber(ARGV[5]))
end

redis.call('HSET', key, 'rate', fleetRate, 'at', string.format('%.0f', now))
if curve then
  redis.call('HSET', key, 'moment', string.format('%.0f', state[1]), 'owed', string.format('%.17g', state[2]),
    'spent', string.format('%.17g', state[3]), 'largest', string.format('%.17g', curve.largest),
    'coolDownUs', string.format('%.17g', curve.coolDownUs))
  redis.call('PEXPIRE', key, string.format('%.0f', max(${KEPT_MS}, ceil((moves.idleAt(curve, state) - now) / 1000) + 1000)))
else
  redis.call('PEXPIRE', key, ${KEPT_MS})
end
return reply`)

/** A shared pace in Redis. */
export class RedisPace {
  readonly #send: SendCommand
  readonly #key: string
  readonly #curveAt: (rate: number) => Curve

  constructor(send: SendCommand, key: string, curveAt: (rate: number) => Curve) {
    this.#send = send
    this.#key = key
    this.#curveAt = curveAt
  }

  /** Says which rate the program has given; returns the rate of the fleet. */
  async announce(rate: number): Promise<number> {
    return (await this.#run('announce', rate)).rate
  }

  /** The rate of the fleet, which was `rate` when this process last heard of it. */
  async rate(rate: number, knownUs: number): Promise<number> {
    return (await this.#run('take', rate, [0, 0, 0, Math.round(knownUs)])).rate
  }

  async setRate(rate: number): Promise<void> {
    await this.#run('set', rate)
  }

  async take(rate: number, request: PaceRequest): Promise<PaceAnswer | OtherRate> {
    const { permits, maxWaitUs, unreported, knownUs } = request
    const {
      rate: current,
      now,
      rest,
    } = await this.#run('take', rate, [permits, Math.min(maxWaitUs, ENDLESS_US), unreported, Math.round(knownUs)])
    if (rest.length === 0) return { rate: current }
    const [isTaken, waitUs, available] = rest as [number, number, number]
    return { isTaken: isTaken === 1, waitUs, now, available }
  }

  /** Takes permits back that were to be there at `moment`, by the clock of Redis. */
  async giveBack(rate: number, permits: number, moment: number): Promise<void> {
    await this.#run('back', rate, [permits, moment])
  }

  async #run(what: string, rate: number, numbers: readonly number[] = []) {
    const args = [what, String(rate), JSON.stringify(this.#curveAt(rate)), ...numbers.map(String)]
    const reply = await evaluate(this.#send, SCRIPT, [this.#key], args)
    const [current, now, ...rest] = Array.isArray(reply) ? reply.map(Number) : []
    if (!(current! > 0) || !(now! > 0)) throw new Error(`the script answered something else: ${String(reply)}`)
    return { rate: current!, now: now!, rest }
  }
}
