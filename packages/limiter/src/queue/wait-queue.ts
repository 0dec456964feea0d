import { setTimeout as pause } from 'node:timers/promises'
import type { Call } from '../call.ts'
import type { CheckOptions } from '../decision/check-options.ts'
import type { Judge } from '../decision/decider.ts'
import type { CountedRule, Judgement, Receipt } from '../decision/pending-verdict.ts'
import { tallyRefusalBy, type Watch } from '../stats/counters.ts'
import type { Verdict } from '../verdict.ts'
import { Waiting } from './scheduled-calls.ts'
import { Line } from './slot-queue.ts'

const ASK_AGAIN_MS = 25

export interface ReceptionParts {
  readonly now: () => number
  /** Who judges at this moment. */
  readonly judge: () => Judge
  readonly watch: Watch
}

/** Where calls wait: for a moment that has been set, or in line for a place that somebody must free. */
export class Reception {
  readonly #parts: ReceptionParts
  readonly #waiting: Waiting
  readonly #line = new Line()

  constructor(parts: ReceptionParts) {
    this.#parts = parts
    this.#waiting = new Waiting(parts.now, receipts => this.#line.freed(receipts))
  }

  /** The first rule of a call for whose places others are in line already. */
  firstLine(call: Call, options?: CheckOptions): CountedRule | undefined {
    if (this.#line.isEmpty) return undefined
    const met = this.#parts.judge().meets(call, options)
    return met.find(counted => this.#line.isWaiting(counted, counted.rule.key(call)))
  }

  /** Holds a call back for as long as its judgement says, if at all. */
  hold(
    judgement: Judgement,
    call: Call,
    cost: number,
    since: number,
    options?: CheckOptions,
  ): Verdict | Promise<Verdict> {
    if (judgement.waitMs > 0) return this.#waiting.hold(judgement, since, options?.signal)
    if (judgement.fullHouse) return this.standInLine(call, cost, judgement.fullHouse, options)
    return judgement
  }

  async standInLine(call: Call, cost: number, counted: CountedRule, options?: CheckOptions): Promise<Verdict> {
    const { judge, watch, now } = this.#parts
    const { rule, waiting } = counted
    const since = now()
    if (waiting >= rule.queueSize) {
      tallyRefusalBy(counted, rule.key(call), watch)
      return (await judge().look(call, cost, since, options)).refusedBy(rule, 'queue-full')
    }
    const signal = options?.signal
    const take = () => judge().takeHere(call, cost, now(), options)
    const isElsewhere = judge()
      .meets(call, options)
      .some(({ counter }) => counter)
    const judgement = isElsewhere
      ? await this.#askAgain(call, cost, counted, options)
      : await this.#line.join(counted, rule.key(call), take, signal)
    if (judgement.reason === 'timeout') tallyRefusalBy(counted, rule.key(call), watch)
    if (judgement.waitMs > 0) return this.#waiting.hold(judgement, since, signal)
    if (judgement.allowed) {
      counted.tally.waited++
      watch.total.waited++
    }
    return judgement.held(judgement.receipts, (now() - since) / 1000)
  }

  /** Places have been given back. */
  freed(receipts: readonly Receipt[]): void {
    this.#line.freed(receipts)
  }

  /** The rules have changed. */
  reconsider(): void {
    this.#line.reconsider()
  }

  /** Waits for a place that another process may free: nobody tells, so it is asked for again and again. */
  async #askAgain(call: Call, cost: number, counted: CountedRule, options?: CheckOptions): Promise<Judgement> {
    const { judge, now } = this.#parts
    const signal = options?.signal
    const until = now() + counted.rule.queueTimeoutMs * 1000
    counted.waiting++
    try {
      for (;;) {
        await pause(ASK_AGAIN_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => signal?.throwIfAborted())
        const judgement = await judge().take(call, cost, now(), options)
        if (!judgement.fullHouse) return judgement
        if (now() >= until) return judgement.refusedBy(counted.rule, 'timeout')
      }
    } finally {
      counted.waiting--
    }
  }
}
