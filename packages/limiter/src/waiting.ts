import { giveBack, type Judgement, type Receipt } from './judgement.ts'
import { localCharge, type MemoryStore } from './stores/memory.ts'
import type { Table } from './stores/table.ts'

interface Waiter {
  readonly judgement: Judgement
  readonly since: number
  receipts: readonly Receipt[]
  timer: NodeJS.Timeout | undefined
  settle(judgement: Judgement): void
}

/**
 * Calls that have been admitted for a moment to come. Each was counted when it was judged, so the order is settled and
 * a timer per waiting call is all there is. Whoever gives up gives back his place and what he was charged, and those
 * behind him move up.
 */
export class Waiting {
  readonly #store: MemoryStore
  readonly #now: () => number
  readonly #onFreed: (receipts: readonly Receipt[]) => void
  readonly #waiters = new Set<Waiter>()
  readonly #gone = new Set<Waiter>()

  constructor(store: MemoryStore, now: () => number, onFreed: (receipts: readonly Receipt[]) => void) {
    this.#store = store
    this.#now = now
    this.#onFreed = onFreed
  }

  /** Resolves to the judgement when its moment has come; rejects with the signal's reason if that comes first. */
  hold(judgement: Judgement, since: number, signal?: AbortSignal): Promise<Judgement> {
    return new Promise((resolve, reject) => {
      const abandon = (): void => {
        this.#leave(waiter)
        this.#abandon(waiter)
        reject(signal?.reason)
      }
      const settle = (settled: Judgement): void => {
        this.#leave(waiter)
        signal?.removeEventListener('abort', abandon)
        resolve(settled)
      }
      const waiter: Waiter = { judgement, since, receipts: judgement.receipts, timer: undefined, settle }
      this.#waiters.add(waiter)
      for (const { counted } of waiter.receipts) counted.waiting++
      if (signal?.aborted) return abandon()
      signal?.addEventListener('abort', abandon, { once: true })
      this.#arm(waiter, judgement.waitMs)
    })
  }

  #arm(waiter: Waiter, ms: number): void {
    clearTimeout(waiter.timer)
    const waitMs = (latest(waiter.receipts) - waiter.since) / 1000
    waiter.timer = setTimeout(() => waiter.settle(waiter.judgement.held(waiter.receipts, waitMs)), Math.ceil(ms))
  }

  #leave(waiter: Waiter): void {
    clearTimeout(waiter.timer)
    this.#waiters.delete(waiter)
    for (const { counted } of waiter.receipts) counted.waiting--
  }

  /** Those who give up in one turn are dealt with together, so that a thousand closed connections cost one pass. */
  #abandon(waiter: Waiter): void {
    if (this.#gone.size === 0) setImmediate(() => this.#moveUp())
    this.#gone.add(waiter)
  }

  #moveUp(): void {
    const now = this.#now()
    const affected = this.#behindTheGone()
    for (const { receipts } of affected.toReversed()) {
      for (const receipt of receipts.toReversed()) giveBack(receipt, now, 'all')
    }
    for (const waiter of affected) {
      if (this.#gone.has(waiter)) continue
      waiter.receipts = this.#retake(waiter.receipts, now)
      this.#arm(waiter, (latest(waiter.receipts) - now) / 1000)
    }
    const freed = [...this.#gone].flatMap(waiter => waiter.receipts)
    this.#gone.clear()
    this.#onFreed(freed)
  }

  /** Those who left and all who wait behind one of them for the same count, in the order they came. */
  #behindTheGone(): Waiter[] {
    const touched = new Map<Table, Set<number>>()
    const inOrder = [...this.#gone, ...this.#waiters].sort((a, b) => a.since - b.since)
    return inOrder.filter(waiter => {
      const shares = waiter.receipts.some(({ counted, slot }) => touched.get(counted.table)?.has(slot))
      if (!shares && !this.#gone.has(waiter)) return false
      for (const { counted, slot } of waiter.receipts) {
        touched.set(counted.table, (touched.get(counted.table) ?? new Set()).add(slot))
      }
      return true
    })
  }

  #retake(receipts: readonly Receipt[], now: number): Receipt[] {
    const charges = receipts.map(({ counted, key, cost }) => {
      return { ...localCharge(counted.table), key, cost, enforced: false }
    })
    this.#store.take(charges, charges.length, now)
    return receipts.map((receipt, i) => ({ ...receipt, slot: charges[i]!.slot, moment: now + charges[i]!.wait }))
  }
}

function latest(receipts: readonly Receipt[]): number {
  return Math.max(...receipts.map(receipt => receipt.moment))
}
