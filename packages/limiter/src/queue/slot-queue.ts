import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'
import { RankedQueue } from './ranked-queue.ts'
import { nodeTimers, type Timers } from './timers.ts'

interface QueuedCall {
  readonly state: RuleState
  readonly key: string
  /** Calls of a higher rank are served first. */
  readonly rank: number
  /** Decides the call again; the verdict says whether the rule is still exhausted. */
  attempt(): PendingVerdict
  admit(pending: PendingVerdict): void
  /** Refuses the call to make room for one of a higher rank. */
  dismiss(): void
}

/** A timer that is set for longer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Calls that wait for a concurrency slot, per rule and key: the highest rank first, and first come, first served within a rank. Nothing is charged while a call
 * waits; when a slot is released, the first call in the queue is decided again.
 */
export class SlotQueue {
  readonly #timers: Timers
  readonly #queues = new Map<RuleState, Map<string, RankedQueue<QueuedCall>>>()
  /** Calls that are first in their queue while another rule is exhausted, and that rule. */
  readonly #waitingElsewhere = new Map<QueuedCall, RuleState>()

  /** The number of calls that wait. */
  size = 0

  constructor(timers: Timers = nodeTimers) {
    this.#timers = timers
  }

  isWaiting(state: RuleState, key: string): boolean {
    return this.#queues.get(state)?.has(key) ?? false
  }

  /** Resolves when a slot is free, or after the rule's timeout to the verdict of that moment. */
  join(
    state: RuleState,
    key: string,
    rank: number,
    attempt: () => PendingVerdict,
    signal?: AbortSignal,
  ): Promise<PendingVerdict> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#timers.clear(timer)
        signal?.removeEventListener('abort', abandon)
        this.#remove(state, key, queued)
      }
      const abandon = (): void => {
        leave()
        reject(signal?.reason)
        this.#advance(state, key)
      }
      const admit = (pending: PendingVerdict): void => {
        leave()
        resolve(pending)
      }
      const dismiss = (): void => {
        const pending = attempt()
        admit(pending.exhaustedRule ? pending.refusedBy(state.rule, 'queue-full') : pending)
      }
      const queued: QueuedCall = { state, key, rank, attempt, admit, dismiss }
      const giveUp = (): void => {
        const pending = attempt()
        admit(pending.exhaustedRule ? pending.refusedBy(state.rule, 'timeout') : pending)
        // the next call may cost less
        this.#advance(state, key)
      }
      const timer = this.#timers.set(giveUp, Math.min(state.rule.queueTimeoutMs, MAX_TIMER_MS))
      this.#add(state, key, queued)
      if (signal?.aborted) return abandon()
      signal?.addEventListener('abort', abandon, { once: true })
    })
  }

  /** Makes room for a call of this rank: refuses one of the lowest rank, if that is lower. Returns whether it did. */
  makeRoom(state: RuleState, rank: number): boolean {
    let lowest: QueuedCall | undefined
    for (const queue of this.#queues.get(state)?.values() ?? []) {
      const candidate = queue.lowest()
      if (candidate && candidate.rank < (lowest?.rank ?? rank)) lowest = candidate
    }
    lowest?.dismiss()
    return lowest !== undefined
  }

  /** Slots have been released: admits the calls that are first in the queues for them. */
  freed(receipts: readonly Receipt[]): void {
    for (const { state, key, slot } of receipts) {
      const keys = slot === OVERFLOW_SLOT ? [...(this.#queues.get(state)?.keys() ?? [])] : [key]
      for (const waiting of keys) this.#advance(state, waiting)
      for (const [queued, rule] of [...this.#waitingElsewhere]) {
        if (rule === state) this.#advance(queued.state, queued.key)
      }
    }
  }

  /** The rules have changed: the first call of each queue is decided by the new ones. */
  reconsider(): void {
    for (const [state, queues] of [...this.#queues]) {
      for (const key of [...queues.keys()]) this.#advance(state, key)
    }
  }

  #advance(state: RuleState, key: string): void {
    for (let first = this.#first(state, key); first; first = this.#first(state, key)) {
      const pending = first.attempt()
      if (pending.exhaustedRule) {
        if (pending.exhaustedRule === state) this.#waitingElsewhere.delete(first)
        else this.#waitingElsewhere.set(first, pending.exhaustedRule)
        return
      }
      first.admit(pending)
    }
  }

  #first(state: RuleState, key: string): QueuedCall | undefined {
    return this.#queues.get(state)?.get(key)?.first()
  }

  #add(state: RuleState, key: string, queued: QueuedCall): void {
    const queues = this.#queues.get(state) ?? new Map<string, RankedQueue<QueuedCall>>()
    this.#queues.set(state, queues)
    const queue = queues.get(key) ?? new RankedQueue<QueuedCall>()
    queues.set(key, queue)
    queue.add(queued)
    this.size++
    state.waiting++
  }

  #remove(state: RuleState, key: string, queued: QueuedCall): void {
    const queues = this.#queues.get(state)
    const queue = queues?.get(key)
    if (!queue?.delete(queued)) return
    this.#waitingElsewhere.delete(queued)
    this.size--
    state.waiting--
    if (queue.size === 0) queues?.delete(key)
    if (queues?.size === 0) this.#queues.delete(state)
  }
}
