import { setTimeout as pause } from 'node:timers/promises'
import type { Call } from '../call.ts'
import type { CheckOptions } from '../decision/check-options.ts'
import type { Decider } from '../decision/decider.ts'
import type { PendingVerdict, Receipt, RuleState } from '../decision/pending-verdict.ts'
import { type Counters, tallyRefusalBy } from '../stats/counters.ts'
import type { Verdict } from '../verdict.ts'
import { ScheduledCalls } from './scheduled-calls.ts'
import { SlotQueue } from './slot-queue.ts'

const ASK_AGAIN_MS = 25

export interface WaitQueueOptions {
  readonly now: () => number
  /** Who judges at this moment. */
  readonly judge: () => Decider
  readonly watch: Counters
}

/** Where calls wait: for a moment that has been set, or in line for a place that somebody must free. */
export class WaitQueue {
  readonly #parts: WaitQueueOptions
  readonly #waiting: ScheduledCalls
  readonly #line = new SlotQueue()

  constructor(parts: WaitQueueOptions) {
    this.#parts = parts
    this.#waiting = new ScheduledCalls(parts.now, receipts => this.#line.freed(receipts))
  }

  /** The first rule of a call for whose places others are in line already. */
  firstLine(call: Call, options?: CheckOptions): RuleState | undefined {
    if (this.#line.isEmpty) return undefined
    const met = this.#parts.judge().meets(call, options)
    return met.find(counted => this.#line.isWaiting(counted, counted.rule.key(call)))
  }

  /** Holds a call back for as long as its judgement says, if at all. */
  hold(
    pending: PendingVerdict,
    call: Call,
    cost: number,
    since: number,
    options?: CheckOptions,
  ): Verdict | Promise<Verdict> {
    if (pending.waitMs > 0) return this.#waiting.hold(pending, since, options?.signal)
    if (pending.exhaustedRule) return this.enqueue(call, cost, pending.exhaustedRule, options)
    return pending
  }

  async enqueue(call: Call, cost: number, counted: RuleState, options?: CheckOptions): Promise<Verdict> {
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
    const pending = isElsewhere
      ? await this.#askAgain(call, cost, counted, options)
      : await this.#line.join(counted, rule.key(call), take, signal)
    if (pending.reason === 'timeout') tallyRefusalBy(counted, rule.key(call), watch)
    if (pending.waitMs > 0) return this.#waiting.hold(pending, since, signal)
    if (pending.allowed) {
      counted.tally.waited++
      watch.total.waited++
    }
    return pending.held(pending.receipts, (now() - since) / 1000)
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
  async #askAgain(call: Call, cost: number, counted: RuleState, options?: CheckOptions): Promise<PendingVerdict> {
    const { judge, now } = this.#parts
    const signal = options?.signal
    const until = now() + counted.rule.queueTimeoutMs * 1000
    counted.waiting++
    try {
      for (;;) {
        await pause(ASK_AGAIN_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => signal?.throwIfAborted())
        const pending = await judge().take(call, cost, now(), options)
        if (!pending.exhaustedRule) return pending
        if (now() >= until) return pending.refusedBy(counted.rule, 'timeout')
      }
    } finally {
      counted.waiting--
    }
  }
}
