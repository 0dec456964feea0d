import type { PendingVerdict } from '../../../packages/limiter/src/decision/pending-verdict.ts'
import { type Receipt, recharge, refundCharge } from '../../../packages/limiter/src/decision/receipt.ts'
import type { RuleState } from '../../../packages/limiter/src/decision/rule-state.ts'
import type { Table } from '../../../packages/limiter/src/stores/memory/table.ts'

interface Waiter {
  readonly pending: PendingVerdict
  readonly since: number
  /** Who came first has the lower one, also within a microsecond. */
  readonly turn: number
  /** The rules that make it wait. */
  readonly queues: readonly RuleState[]
  receipts: readonly Receipt[]
  timer: NodeJS.Timeout | undefined
  settle(pending: PendingVerdict): void
}

/** A timer that is set for longer goes off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
const MOST_EARLY_US = 2000

/**
 * Calls that wait, by the plainest way there is: a timer for each, and when some give up, all that wait behind them for the
 * same count are refunded and counted again, one by one. `ScheduledCalls` must give the same results.
 */
export class PlainWaiting {
  readonly #now: () => number
  readonly #onFreed: (receipts: readonly Receipt[]) => void
  readonly #waiters = new Set<Waiter>()
  readonly #gone = new Set<Waiter>()
  #turns = 0

  constructor({ now, onFreed }: { now: () => number; onFreed: (receipts: readonly Receipt[]) => void }) {
    this.#now = now
    this.#onFreed = onFreed
  }

  /** Resolves to the judgement when its moment has come; rejects with the signal's reason if that comes first. */
  hold(pending: PendingVerdict, since: number, { signal }: { signal?: AbortSignal } = {}): Promise<PendingVerdict> {
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        this.#leave(waiter)
        this.#abandon(waiter)
        reject(signal?.reason)
      }
      const settle = (settled: PendingVerdict): void => {
        this.#leave(waiter)
        signal?.removeEventListener('abort', abandon)
        resolve(settled)
      }
      const { receipts } = pending
      const queues = receipts.filter(({ passAt }) => passAt > since).map(({ state }) => state)
      const waiter: Waiter = { pending, since, turn: this.#turns++, queues, receipts, timer: undefined, settle }
      this.#waiters.add(waiter)
      for (const state of waiter.queues) state.waiting++
      if (signal?.aborted) return abandon()
      signal?.addEventListener('abort', abandon, { once: true })
      this.#arm(waiter, this.#now())
    })
  }

  #arm(waiter: Waiter, now: number): void {
    clearTimeout(waiter.timer)
    const moment = latest(waiter.receipts)
    const leftMs = Math.ceil((moment - now) / 1000)
    const pass = (): void => waiter.settle(waiter.pending.afterWait(waiter.receipts, (moment - waiter.since) / 1000))
    // whoever may pass now must not be overtaken by a call that comes before a timer goes off
    if (leftMs <= 0) pass()
    else if (leftMs > LONGEST_TIMER_MS)
      waiter.timer = setTimeout(() => this.#arm(waiter, this.#now()), LONGEST_TIMER_MS)
    else waiter.timer = setTimeout(() => this.#passIfDue(waiter, moment, pass), leftMs)
  }

  /** A timer may go off up to a millisecond early; whoever waits then waits that much longer. */
  #passIfDue(waiter: Waiter, moment: number, pass: () => void): void {
    const leftUs = moment - this.#now()
    if (leftUs > 0 && leftUs <= MOST_EARLY_US) waiter.timer = setTimeout(pass, Math.ceil(leftUs / 1000))
    else pass()
  }

  #leave(waiter: Waiter): void {
    clearTimeout(waiter.timer)
    this.#waiters.delete(waiter)
    for (const state of waiter.queues) state.waiting--
  }

  /** Those who give up in one turn are dealt with together, so that a thousand closed connections cost one pass. */
  #abandon(waiter: Waiter): void {
    if (this.#gone.size === 0) setImmediate(() => this.#moveUp())
    this.#gone.add(waiter)
  }

  #moveUp(): void {
    const now = this.#now()
    const affected = this.#behindTheGone(now)
    // what counts already goes on counting for those who stay, and only what they wait for is settled anew
    const isOpen = (waiter: Waiter, receipt: Receipt): boolean => {
      return this.#gone.has(waiter) || isPending(receipt, now)
    }
    for (const waiter of affected.toReversed()) {
      for (const receipt of waiter.receipts.toReversed()) {
        if (isOpen(waiter, receipt)) refundCharge(receipt, now, 'all')
      }
    }
    for (const waiter of affected) {
      if (this.#gone.has(waiter)) continue
      waiter.receipts = waiter.receipts.map(receipt => (isOpen(waiter, receipt) ? recharge(receipt, now) : receipt))
      this.#arm(waiter, now)
    }
    const freed = [...this.#gone].flatMap(waiter => waiter.receipts)
    this.#gone.clear()
    this.#onFreed(freed)
  }

  /** Those who left and all who wait behind one of them for the same count, in the order they came. */
  #behindTheGone(now: number): Waiter[] {
    const touched = new Map<Table, Set<number>>()
    const inOrder = [...this.#gone, ...this.#waiters].sort((a, b) => a.turn - b.turn)
    return inOrder.filter(waiter => {
      const open = this.#gone.has(waiter) ? waiter.receipts : waiter.receipts.filter(receipt => isPending(receipt, now))
      const shares = open.some(({ state, slot }) => touched.get(state.table)?.has(slot))
      if (!shares && !this.#gone.has(waiter)) return false
      for (const { state, slot } of open) {
        touched.set(state.table, (touched.get(state.table) ?? new Set()).add(slot))
      }
      return true
    })
  }
}

/** Counted here for a moment to come: such a charge can move up. */
function isPending({ refund, passAt }: Receipt, now: number): boolean {
  return refund === undefined && passAt > now
}

function latest(receipts: readonly Receipt[]): number {
  return Math.max(...receipts.map(receipt => receipt.passAt))
}
