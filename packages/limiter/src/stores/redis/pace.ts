import { smoothLua } from '../../algorithms/lua/generated.ts'
import type { Curve } from '../../algorithms/smooth.ts'
import { escapePart } from '../ledger-keys.ts'
import { UnreadableReply } from '../store-error.ts'
import { evaluate, scriptOf } from './script/evaluate-script.ts'
import { pace } from './script/generated.ts'
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

/** Redis reads no number without an end. */
const ENDLESS_US = 2 ** 52

const SCRIPT = scriptOf(`local floor, ceil, max, min, huge = math.floor, math.ceil, math.max, math.min, math.huge
local moves = (function()${smoothLua.lua}
end)()${pace}`)

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
    if (!(current! > 0) || !(now! > 0)) throw new UnreadableReply('a rate and a moment', reply)
    return { rate: current!, now: now!, rest }
  }
}
