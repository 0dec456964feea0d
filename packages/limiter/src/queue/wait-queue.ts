import type { Call } from '../call.ts'
import { warnOnce } from '../common/warn-once.ts'
import { type CheckOptions, signalOf } from '../decision/check-options.ts'
import type { Decider } from '../decision/decider.ts'
import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'
import { hasRoom } from '../decision/rule-state.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { type Counters, tallyRefusalBy } from '../stats/counters.ts'
import type { Verdict } from '../verdict.ts'
import { ScheduledCalls } from './scheduled-calls.ts'
import { SlotQueue } from './slot-queue.ts'
import type { Timers } from './timers.ts'

export interface WaitQueueOptions {
  readonly now: () => number
  /** The decider in force. */
  readonly decider: () => Decider
  readonly counters: Counters
  /** Those of Node unless given. */
  readonly timers?: Timers | undefined
}

interface WaitingCall {
  readonly call: Call
  readonly cost: number
  readonly since: number
  readonly rank: number
  readonly signal: AbortSignal | undefined
}

/** Calls that wait: for the moment at which they pass, or for a concurrency slot that another call must release. */
export class WaitQueue {
  readonly #options: WaitQueueOptions
  /** Calls that wait for their moment. */
  readonly scheduled: ScheduledCalls
  /** Calls that wait for a slot. */
  readonly slots: SlotQueue

  constructor(options: WaitQueueOptions) {
    this.#options = options
    this.slots = new SlotQueue(options.timers)
    this.scheduled = new ScheduledCalls({
      ...{ now: options.now, timers: options.timers },
      onFreed: receipts => this.slots.freed(receipts),
      onOverdue: () => warnOnce('DIANA_WAIT_OVERDUE'),
    })
  }

  /** Returns the first rule of a call for whose slots other calls wait already. */
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
    if (pending.waitMs > 0 || (pending.allowed && this.scheduled.isBehind(pending))) {
      const rank = this.#options.decider().rankOf(call)
      return this.#schedule(pending, { call, cost, since, rank, signal: signalOf(options) }, options)
    }
    if (pending.exhaustedRule) return this.enqueue(call, cost, pending.exhaustedRule, options)
    return pending
  }

  async enqueue(call: Call, cost: number, state: RuleState, options?: CheckOptions): Promise<Verdict> {
    const { decider, counters, now } = this.#options
    const { rule } = state
    const since = now()
    const key = rule.key(call)
    const rank = decider().rankOf(call)
    if (!hasRoom(state, key) && !(rank > 0 && this.slots.makeRoom(state, rank))) {
      tallyRefusalBy(state, key, counters)
      return (await decider().look(call, cost, since, options)).refusedBy(rule, 'queue-full')
    }
    const signal = signalOf(options)
    const attempt = () => {
      if (this.scheduled.dueAt <= now()) this.scheduled.passDue(now())
      return decider().take(call, cost, now(), options)
    }
    const polls = decider()
      .meets(call, options)
      .some(({ counter }) => counter)
    const pending = await this.slots.join({ state, key, rank, attempt, polls }, signal)
    if (pending.reason === 'timeout') tallyRefusalBy(state, key, counters)
    if (pending.waitMs > 0) return this.#schedule(pending, { call, cost, since, rank, signal }, options)
    if (pending.allowed) {
      state.tally.waited++
      counters.total.waited++
    }
    return pending.afterWait(pending.receipts, (now() - since) / 1000)
  }

  #schedule(
    pending: PendingVerdict,
    { call, cost, since, rank, signal }: WaitingCall,
    options: CheckOptions | undefined,
  ): Promise<PendingVerdict> {
    const { decider, counters, now } = this.#options
    const refuse = (rule: CompiledRule): PendingVerdict | Promise<PendingVerdict> => {
      // it was counted as one that passes
      for (const { state } of pending.receipts) state.tally.undoPass(false)
      counters.total.undoPass(false)
      const { state, key = '' } = pending.receipts.find(receipt => receipt.state.rule === rule) ?? {}
      tallyRefusalBy(state, key, counters)
      const seen = decider().look(call, cost, now(), options)
      return seen instanceof Promise
        ? seen.then(one => one.refusedBy(rule, 'queue-full'))
        : seen.refusedBy(rule, 'queue-full')
    }
    return this.scheduled.hold(pending, since, { signal, rank, refuse })
  }

  /** Slots have been released. */
  freed(receipts: readonly Receipt[]): void {
    this.slots.freed(receipts)
  }

  /** Decides waiting calls by the new rules. */
  reconsider(): void {
    this.slots.reconsider()
  }
}
