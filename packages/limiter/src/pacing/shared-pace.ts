import { setTimeout as pause } from 'node:timers/promises'
import { emptied, Smooth } from '../algorithms/smooth.ts'
import { within } from '../common/within.ts'
import type { Fleet } from '../stores/membership/fleet.ts'
import type { PaceAnswer, PaceRequest, RedisPace } from '../stores/redis/pace.ts'
import type { Connected, FleetPaceOptions } from './connect-pace.ts'

/** Permits that were taken: how long until they are there, and how to give them back. */
export interface Reservation {
  readonly waitUs: number
  /** The time that it took to get them promised, while Redis could not be asked. */
  readonly waitedUs: number
  giveBack(): void
}

/** After a failure, Redis is not asked for this long. */
const RETRY_MS = 250

/**
 * The pace of jobs that several processes share in Redis, and the rate of it, which any of them may change for all. While
 * Redis is down, each process continues at its share of the rate, from the last known pace and with nothing saved;
 * permits that pass meanwhile are counted in Redis when it answers again.
 */
export class FleetPace {
  readonly #options: FleetPaceOptions
  #connecting: Promise<Connected> | undefined
  #rate: number
  /** The rate that the program was written with. */
  readonly #announced: number
  #isAnnounced = false
  /** A rate that was set here and Redis does not know yet. */
  #newRate: number | undefined
  #retryAt = 0
  #here: { readonly smooth: Smooth; readonly state: Float64Array } | undefined
  /** Until then this process knows the pace to be taken, by its own clock. */
  #takenUntil = 0
  /** Permits that passed here and Redis has not counted. */
  #unreported = 0

  constructor(rate: number, options: FleetPaceOptions) {
    this.#rate = rate
    this.#announced = rate
    this.#options = options
  }

  /** The rate of the fleet, as far as this process has heard. */
  get rate(): number {
    return this.#rate
  }

  set rate(rate: number) {
    this.#newRate = rate
    this.#follow(rate)
    void this.#synchronize().catch(() => {})
  }

  /** Takes permits that are there within `maxWaitUs`; undefined if they are not, and nothing is taken. */
  async take(permits: number, maxWaitUs: number, signal?: AbortSignal): Promise<Reservation | undefined> {
    const { now } = this.#options
    const since = now()
    const { fleet } = await this.#connected()
    for (;;) {
      if (performance.now() >= this.#retryAt) {
        try {
          return await this.#takeInRedis(permits, maxWaitUs - (now() - since), now() - since)
        } catch {
          this.#retryAt = performance.now() + RETRY_MS
        }
      }
      const leftUs = maxWaitUs - (now() - since)
      const retryMs = Math.max(1, Math.ceil(this.#retryAt - performance.now()))
      const reserved = this.#takeHere(permits, Math.min(leftUs, retryMs * 1000), fleet, now() - since)
      if (reserved) return reserved
      if (leftUs < retryMs * 1000) return undefined
      await pause(retryMs, undefined, { signal })
    }
  }

  /** Returns how many calls for one permit would pass at once. */
  async available(): Promise<number> {
    const { fleet } = await this.#connected()
    try {
      if (performance.now() >= this.#retryAt) return (await this.#ask({ permits: 0, maxWaitUs: 0 })).available
    } catch {
      this.#retryAt = performance.now() + RETRY_MS
    }
    if (!fleet.hasShare) return 0
    const { smooth, state } = this.#stateHere(fleet)
    return smooth.passesAtOnce(state, 0, this.#options.now())
  }

  async close(): Promise<void> {
    const connected = await this.#connecting?.catch(() => undefined)
    if (!connected) return
    const { heartbeat, fleet, connection } = connected
    heartbeat.stop()
    await within(fleet.leave(), this.#options.timeoutMs).catch(() => {})
    connection.close()
  }

  async #takeInRedis(permits: number, maxWaitUs: number, waitedUs: number): Promise<Reservation | undefined> {
    const { now } = this.#options
    const { pace } = await this.#connected()
    let isLate = false
    const asked = this.#ask({ permits, maxWaitUs: Math.max(0, maxWaitUs) }, answer => {
      if (!isLate || !answer.isTaken) return
      // permits that come too late cover those granted here meanwhile; the rest is refunded
      const paid = Math.min(permits, this.#unreported)
      this.#unreported -= paid
      if (paid < permits) void this.#giveBack(pace, permits - paid, answer)
    })
    try {
      const answer = await asked
      this.#here = undefined
      if (!answer.isTaken) return undefined
      const { stableUs } = this.#options.curveAt(this.#rate)
      this.#takenUntil = Math.max(this.#takenUntil, now() + answer.waitUs + permits * stableUs)
      return { waitUs: answer.waitUs, waitedUs, giveBack: () => void this.#giveBack(pace, permits, answer) }
    } catch (error) {
      isLate = true
      throw error
    }
  }

  /** Gives permits back; if the refund does not reach Redis, the pace is too slow for a while, which is harmless. */
  async #giveBack(pace: RedisPace, permits: number, { now, waitUs }: PaceAnswer): Promise<void> {
    await pace.giveBack(this.#rate, permits, now + waitUs).catch(() => {})
  }

  /** Asks Redis with the rate of the fleet, and reports permits granted here. */
  async #ask(
    { permits, maxWaitUs }: Pick<PaceRequest, 'permits' | 'maxWaitUs'>,
    onAnswer: (answer: PaceAnswer) => void = () => {},
  ): Promise<PaceAnswer> {
    const { timeoutMs } = this.#options
    const { pace } = await this.#connected()
    await this.#synchronize()
    const unreported = this.#unreported
    this.#unreported = 0
    const request = { permits, maxWaitUs, unreported, knownUs: this.#knownUs }
    const asked = this.#askWithRate(pace, request).then(
      answer => {
        onAnswer(answer)
        return answer
      },
      error => {
        this.#unreported += unreported
        throw error
      },
    )
    return await within(asked, timeoutMs)
  }

  get #knownUs(): number {
    return this.#takenUntil === 0 ? -1 : Math.max(0, this.#takenUntil - this.#options.now())
  }

  async #askWithRate(pace: RedisPace, request: PaceRequest): Promise<PaceAnswer> {
    for (;;) {
      const answer = await pace.take(this.#rate, request)
      if (!('rate' in answer)) return answer
      this.#follow(answer.rate)
    }
  }

  /** Sends a rate that was set here to Redis. */
  async #synchronize(): Promise<void> {
    const rate = this.#newRate
    if (rate === undefined) return
    const { pace } = await this.#connected()
    await within(pace.setRate(rate), this.#options.timeoutMs)
    if (this.#newRate === rate) this.#newRate = undefined
  }

  #follow(rate: number): void {
    if (rate === this.#rate) return
    this.#rate = rate
    this.#here = undefined
  }

  #takeHere(permits: number, maxWaitUs: number, fleet: Fleet, waitedUs: number): Reservation | undefined {
    if (!fleet.hasShare) return undefined
    const clock = this.#options.now
    const now = clock()
    const { smooth, state } = this.#stateHere(fleet)
    const waitUs = smooth.delay(state, 0, now)
    if (waitUs > maxWaitUs) return undefined
    smooth.take(state, 0, now, permits, waitUs)
    this.#unreported += permits
    const giveBack = (): void => {
      this.#unreported = Math.max(0, this.#unreported - permits)
      smooth.refund(state, 0, clock(), permits, now + waitUs)
    }
    return { waitUs, waitedUs, giveBack }
  }

  /** This process's share of the pace: the processes take turns from the last known pace. */
  #stateHere({ part }: Fleet): { readonly smooth: Smooth; readonly state: Float64Array } {
    if (this.#here) return this.#here
    const { curveAt, now: clock } = this.#options
    const now = clock()
    const curve = curveAt(this.#rate / part.size)
    const turnUs = Math.min(part.rank, part.size - 1) * curveAt(this.#rate).stableUs
    const state = emptied(curve, now, Math.max(0, this.#takenUntil - now) + turnUs)
    this.#here = { smooth: new Smooth(curve, Number.POSITIVE_INFINITY), state }
    return this.#here
  }

  #connected(): Promise<Connected> {
    this.#connecting ??= this.#connect()
    return this.#connecting
  }

  async #connect(): Promise<Connected> {
    const { connectPace } = await import('./connect-pace.ts')
    return await connectPace(this.#options, {
      onRegistered: pace => this.#hearRate(pace),
      onChange: () => {
        this.#here = undefined
      },
    })
  }

  /** Reads the rate with every heartbeat of this process. */
  async #hearRate(pace: RedisPace): Promise<void> {
    const rate = this.#isAnnounced ? await pace.rate(this.#rate, this.#knownUs) : await pace.announce(this.#announced)
    this.#isAnnounced = true
    if (this.#newRate === undefined) this.#follow(rate)
  }
}
