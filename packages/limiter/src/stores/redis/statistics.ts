import { escapePart } from './counter.ts'
import { evaluate, scriptOf } from './script/evaluate-script.ts'
import { addTraffic, readTraffic } from './script/generated.ts'
import type { SendCommand } from './send-command.ts'
import { slotOf } from './slot.ts'

/** What one rule did in one minute, over the whole fleet. */
export interface MinuteOfTraffic {
  /** Milliseconds since 1970, by the clock of Redis. */
  readonly startMs: number
  readonly allowed: number
  readonly refused: number
}

export interface RedisStatisticsOptions {
  readonly prefix?: string | undefined
  readonly isCluster?: boolean | undefined
}

interface Tally {
  allowed: number
  refused: number
}

const FLUSH_MS = 5000
/** The largest number of rules sent in one command, and counted between two commands. */
const BATCH = 500
const MOST_RULES = 10_000
export const KEPT_MINUTES = 1440

/**
 * How many calls each rule allowed and refused, minute by minute, for the last 24 hours. They are counted in this process
 * and sent to Redis every few seconds in one command, so that no call waits for it; what is counted while Redis cannot be
 * reached is sent later. A count belongs to the minute in which Redis received it.
 */
export class RedisStatistics {
  readonly #send: SendCommand
  readonly #prefix: string
  readonly #isCluster: boolean
  readonly #timer: NodeJS.Timeout
  #tallies = new Map<string, Tally>()

  constructor(send: SendCommand, options: RedisStatisticsOptions = {}) {
    this.#send = send
    this.#prefix = options.prefix ?? 'diana'
    this.#isCluster = options.isCluster ?? false
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS).unref()
  }

  count(rule: string, allowed: boolean): void {
    const tally = this.#tallyOf(rule)
    if (!tally) return
    if (allowed) tally.allowed++
    else tally.refused++
  }

  /** The last `minutes`, oldest first, without those in which nothing happened; at most 24 hours. */
  async read(rule: string, minutes: number): Promise<MinuteOfTraffic[]> {
    const reply = (await evaluate(
      this.#send,
      READ,
      [this.#keyOf(rule)],
      [String(Math.min(minutes, KEPT_MINUTES))],
    )) as unknown[]
    const numbers = reply.map(Number)
    const found: MinuteOfTraffic[] = []
    for (let i = 0; i + 2 < numbers.length; i += 3) {
      found.push({ startMs: numbers[i]! * 60_000, allowed: numbers[i + 1]!, refused: numbers[i + 2]! })
    }
    return found.sort((a, b) => a.startMs - b.startMs)
  }

  /** Sends the counts since the last time to Redis. */
  async flush(): Promise<void> {
    const tallies = [...this.#tallies]
    this.#tallies = new Map()
    await Promise.all(this.#batches(tallies).map(batch => this.#report(batch)))
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }

  async #report(batch: readonly (readonly [string, Tally])[]): Promise<void> {
    const keys = batch.map(([rule]) => this.#keyOf(rule))
    const numbers = batch.flatMap(([, { allowed, refused }]) => [String(allowed), String(refused)])
    try {
      await evaluate(this.#send, ADD, keys, numbers)
    } catch {
      // the next flush sends it again; if only the answer was lost, it is counted twice, which statistics tolerate
      for (const [rule, { allowed, refused }] of batch) {
        const tally = this.#tallyOf(rule)
        if (!tally) continue
        tally.allowed += allowed
        tally.refused += refused
      }
    }
  }

  #tallyOf(rule: string): Tally | undefined {
    const known = this.#tallies.get(rule)
    if (known || this.#tallies.size >= MOST_RULES) return known
    const tally = { allowed: 0, refused: 0 }
    this.#tallies.set(rule, tally)
    return tally
  }

  #batches(tallies: readonly [string, Tally][]): (readonly [string, Tally])[][] {
    const groups = new Map<number, [string, Tally][]>()
    for (const [i, one] of tallies.entries()) {
      const group = this.#isCluster ? slotOf(this.#keyOf(one[0])) : Math.floor(i / BATCH)
      const known = groups.get(group)
      if (known) known.push(one)
      else groups.set(group, [one])
    }
    return [...groups.values()]
  }

  #keyOf(rule: string): string {
    return `${this.#prefix}:d1:traffic{${escapePart(rule)}}`
  }
}

const ADD = scriptOf(`local KEPT_MINUTES = ${KEPT_MINUTES}\n${addTraffic}`)

const READ = scriptOf(readTraffic)
