import { reportFault } from '../common/faults.ts'
import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import { enterQueue, leaveQueue, type QueuedWaiter, type RuleState } from '../decision/rule-state.ts'
import { getOrAdd } from '../rules/get-or-add.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'
import type { Reason } from '../verdict.ts'
import { nodeTimers, type Timers } from './timers.ts'

interface QueueTicket {
  readonly state: RuleState
  readonly key: string
  /** Calls of a higher rank are served first. */
  readonly rank: number
  /** True if another process may release a slot. */
  readonly polls: boolean
  /** Decides the call again; the verdict says whether the rule is still exhausted. */
  attempt(): PendingVerdict | Promise<PendingVerdict>
}

interface QueuedCall extends QueueTicket, QueuedWaiter {
  /** A shared store was asked, and has not answered yet. */
  asked: Promise<PendingVerdict> | undefined
  isGone: boolean
  admit(pending: PendingVerdict): void
  /** Refuses the call, unless a slot is free for it at this moment. */
  dismiss(reason: Reason): void
  fail(error: unknown): void
}

/** The name under which its errors are counted. */
const PLACE = 'calls that wait for slots'
/** A timer that is set for longer fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1
/** The time between questions to a shared store for the first call of a queue: no other process reports that it has released a slot. */
const ASK_AGAIN_MS = 25

/** A queue with ranks: the highest rank first, and within a rank first come, first served. */
class RankedQueue<Item extends { readonly rank: number }> {
  /** From the highest rank to the lowest; most queues have one. */
  readonly #ranks: { readonly rank: number; readonly items: Set<Item> }[] = []
  size = 0

  add(item: Item): void {
    const { rank } = item
    let at = this.#ranks.findIndex(one => one.rank <= rank)
    if (at < 0) at = this.#ranks.length
    if (this.#ranks[at]?.rank !== rank) this.#ranks.splice(at, 0, { rank, items: new Set() })
    this.#ranks[at]!.items.add(item)
    this.size++
  }

  delete(item: Item): boolean {
    const at = this.#ranks.findIndex(one => one.rank === item.rank)
    if (!this.#ranks[at]?.items.delete(item)) return false
    if (this.#ranks[at].items.size === 0) this.#ranks.splice(at, 1)
    this.size--
    return true
  }

  first(): Item | undefined {
    return this.#ranks[0]?.items.values().next().value
  }

  /** Returns one of the lowest rank. */
  lowest(): Item | undefined {
    return this.#ranks.at(-1)?.items.values().next().value
  }
}

/** The calls that wait for the slots of one key. */
class Line extends RankedQueue<QueuedCall> {
  /** Set if the first call is to be decided again. */
  poll: NodeJS.Timeout | undefined
}

/**
 * Calls that wait for a concurrency slot, per rule and key: the highest rank first, and first come, first served within a rank. Nothing is charged while a call
 * waits; when a slot is released, the first call in the queue is decided again. If a slot may be released by another process, the
 * first call is decided again and again.
 */
export class SlotQueue {
  readonly #timers: Timers
  readonly #queues = new Map<RuleState, Map<string, Line>>()
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
  join({ state, key, rank, attempt, polls }: QueueTicket, signal?: AbortSignal): Promise<PendingVerdict> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#timers.clear(timer)
        signal?.removeEventListener('abort', abandon)
        queued.isGone = true
        this.#remove(state, key, queued)
      }
      const abandon = (): void => {
        leave()
        reject(signal?.reason)
        // an answer that comes too late may have taken a slot
        queued.asked?.then(refund, () => {})
        this.#advance(state, key)
      }
      const admit = (pending: PendingVerdict): void => {
        leave()
        resolve(pending)
      }
      const fail = (error: unknown): void => {
        leave()
        reject(error)
      }
      const dismiss = (reason: Reason): void => {
        const end = (pending: PendingVerdict): void =>
          admit(pending.exhaustedRule ? pending.refusedBy(state.rule, reason) : pending)
        try {
          const last = queued.asked ?? attempt()
          if (last instanceof Promise) {
            leave()
            last.then(end, fail)
          } else end(last)
        } catch (error) {
          // a timer runs this: the call ends by its error, and the queue goes on
          fail(error)
          reportFault(PLACE, error)
        }
      }
      const queued: QueuedCall = {
        ...{ state, key, rank, attempt, polls },
        ...{ asked: undefined, isGone: false, admit, dismiss, fail, giveWay: () => dismiss('queue-full') },
      }
      const giveUp = (): void => {
        dismiss('timeout')
        // the next call may cost less
        this.#advance(state, key)
      }
      const timer = this.#timers.set(giveUp, Math.min(state.rule.queueTimeoutMs, MAX_TIMER_MS))
      this.#add(state, key, queued)
      if (polls) this.#askLater(state, key)
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
    lowest?.dismiss('queue-full')
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

  /** Decides the first call of each queue by the new rules. */
  reconsider(): void {
    for (const [state, queues] of [...this.#queues]) {
      for (const key of [...queues.keys()]) this.#advance(state, key)
    }
  }

  #advance(state: RuleState, key: string): void {
    for (let first = this.#first(state, key); first; first = this.#first(state, key)) {
      if (first.asked) return
      try {
        const pending = first.attempt()
        if (pending instanceof Promise) {
          this.#await(first, pending)
          return
        }
        if (!this.#admitted(first, pending)) return
      } catch (error) {
        // only this call has failed; those behind it are decided nevertheless
        first.fail(error)
        reportFault(PLACE, error)
      }
    }
  }

  #await(first: QueuedCall, pending: Promise<PendingVerdict>): void {
    const { state, key } = first
    first.asked = pending
    pending.then(
      answer => {
        first.asked = undefined
        if (!first.isGone && this.#admitted(first, answer)) this.#advance(state, key)
        else this.#askLater(state, key)
      },
      error => {
        if (!first.isGone) first.fail(error)
        this.#advance(state, key)
      },
    )
  }

  #askLater(state: RuleState, key: string): void {
    const line = this.#queues.get(state)?.get(key)
    if (!line || line.poll) return
    const ask = (): void => {
      line.poll = undefined
      this.#advance(state, key)
    }
    line.poll = this.#timers.set(ask, ASK_AGAIN_MS * (0.5 + Math.random()))
  }

  /** Admits a call unless its rule is still exhausted; returns whether it did. */
  #admitted(first: QueuedCall, pending: PendingVerdict): boolean {
    if (pending.exhaustedRule) {
      if (pending.exhaustedRule === first.state) this.#waitingElsewhere.delete(first)
      else this.#waitingElsewhere.set(first, pending.exhaustedRule)
      return false
    }
    first.admit(pending)
    return true
  }

  #first(state: RuleState, key: string): QueuedCall | undefined {
    return this.#queues.get(state)?.get(key)?.first()
  }

  #add(state: RuleState, key: string, queued: QueuedCall): void {
    const queues = getOrAdd(this.#queues, state, () => new Map<string, Line>())
    getOrAdd(queues, key, () => new Line()).add(queued)
    this.size++
    enterQueue(state, key, queued)
  }

  #remove(state: RuleState, key: string, queued: QueuedCall): void {
    const queues = this.#queues.get(state)
    const queue = queues?.get(key)
    if (!queue?.delete(queued)) return
    this.#waitingElsewhere.delete(queued)
    this.size--
    leaveQueue(state, key)
    if (queue.size === 0) {
      this.#timers.clear(queue.poll)
      queues?.delete(key)
    }
    if (queues?.size === 0) this.#queues.delete(state)
  }
}

/** Takes back what a call was charged that has left. */
function refund(pending: PendingVerdict): void {
  void pending.refund()
}
