import { setTimeout as pause } from 'node:timers/promises'
import type { Call } from '../call.ts'
import { type CheckOptions, signalOf } from '../decision/check-options.ts'
import type { Decider } from '../decision/decider.ts'
import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'
import { type Counters, tallyRefusalBy } from '../stats/counters.ts'
import type { Verdict } from '../verdict.ts'
import { ScheduledCalls } from './scheduled-calls.ts'
import { SlotQueue } from './slot-queue.ts'
import type { Timers } from './timers.ts'

const ASK_AGAIN_MS = 25

export interface WaitQueueOptions {
  readonly now: () => number
  /** The decider in force. */
  readonly decider: () => Decider
  readonly counters: Counters
  /** Those of Node unless given. */
  readonly timers?: Timers | undefined
}

/** Calls that wait: for the moment at which they pass, or for a concurrency slot that another call must release. */
export class WaitQueue {
  readonly #options: WaitQueueOptions
  readonly #scheduled: ScheduledCalls
  /** Calls that wait for a slot. */
  readonly slots: SlotQueue

  constructor(options: WaitQueueOptions) {
    this.#options = options
    this.slots = new SlotQueue(options.timers)
    this.#scheduled = new ScheduledCalls(options.now, receipts => this.slots.freed(receipts), options.timers)
  }

  /** The first rule of a call for whose slots other calls wait already. */
  firstQueue(call: Call, options?: CheckOptions): RuleState | undefined {
    const met = this.#options.decider().meets(call, options)
    return met.find(state => this.slots.isWaiting(state, state.rule.key(call)))
  }

  /** Makes a call wait for as long as its verdict says. */
  hold(
    pending: PendingVerdict,
    call: Call,
    cost: number,
    since: number,
    options?: CheckOptions,
  ): Verdict | Promise<Verdict> {
    if (pending.waitMs > 0) {
      return this.#scheduled.hold(pending, since, signalOf(options), this.#options.decider().rankOf(call))
    }
    if (pending.exhaustedRule) return this.enqueue(call, cost, pending.exhaustedRule, options)
    return pending
  }

  async enqueue(call: Call, cost: number, state: RuleState, options?: CheckOptions): Promise<Verdict> {
    const { decider, counters, now } = this.#options
    const { rule, waiting } = state
    const since = now()
    const rank = decider().rankOf(call)
    if (waiting >= rule.queueSize && !(rank > 0 && this.slots.makeRoom(state, rank))) {
      tallyRefusalBy(state, rule.key(call), counters)
      return (await decider().look(call, cost, since, options)).refusedBy(rule, 'queue-full')
    }
    const signal = signalOf(options)
    const take = () => decider().takeLocal(call, cost, now(), options)
    const isShared = decider()
      .meets(call, options)
      .some(({ counter }) => counter)
    const pending = isShared
      ? await this.#askAgain(call, cost, state, options)
      : await this.slots.join(state, rule.key(call), rank, take, signal)
    if (pending.reason === 'timeout') tallyRefusalBy(state, rule.key(call), counters)
    if (pending.waitMs > 0) return this.#scheduled.hold(pending, since, signal, rank)
    if (pending.allowed) {
      state.tally.waited++
      counters.total.waited++
    }
    return pending.afterWait(pending.receipts, (now() - since) / 1000)
  }

  /** Slots have been released. */
  freed(receipts: readonly Receipt[]): void {
    this.slots.freed(receipts)
  }

  /** The rules have changed. */
  reconsider(): void {
    this.slots.reconsider()
  }

  /** Waits for a slot that another process may release: no process reports that, so the store is asked again and again. */
  async #askAgain(call: Call, cost: number, state: RuleState, options?: CheckOptions): Promise<PendingVerdict> {
    const { decider, now } = this.#options
    const signal = signalOf(options)
    const until = now() + state.rule.queueTimeoutMs * 1000
    state.waiting++
    try {
      for (;;) {
        await pause(ASK_AGAIN_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => signal?.throwIfAborted())
        const pending = await decider().take(call, cost, now(), options)
        if (!pending.exhaustedRule) return pending
        if (now() >= until) return pending.refusedBy(state.rule, 'timeout')
      }
    } finally {
      state.waiting--
    }
  }
}
