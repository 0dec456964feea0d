import type { PendingVerdict, Receipt, RuleState } from '../decision/pending-verdict.ts'
import { OVERFLOW_SLOT } from '../stores/memory/table.ts'

interface Guest {
  readonly counted: RuleState
  readonly key: string
  /** Judges the call again; the judgement tells whether the house is still full. */
  attempt(): PendingVerdict
  settle(pending: PendingVerdict): void
}

/** A timer that is set for longer goes off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Calls that wait for a place no clock frees: first come, first served, per rule and key. Nothing is charged while a
 * call stands in line; when a place is given back, the first in line is judged anew.
 */
export class SlotQueue {
  readonly #lines = new Map<RuleState, Map<string, Set<Guest>>>()
  /** Those who are first in their line and find another house full, and which. */
  readonly #elsewhere = new Map<Guest, RuleState>()

  get isEmpty(): boolean {
    return this.#lines.size === 0
  }

  isWaiting(counted: RuleState, key: string): boolean {
    return this.#lines.get(counted)?.has(key) ?? false
  }

  /** Resolves when a place is free, or after the rule's timeout to whatever the judgement is then. */
  join(counted: RuleState, key: string, attempt: () => PendingVerdict, signal?: AbortSignal): Promise<PendingVerdict> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abandon)
        this.#remove(counted, key, queued)
      }
      const abandon = (): void => {
        leave()
        reject(signal?.reason)
        this.#advance(counted, key)
      }
      const settle = (pending: PendingVerdict): void => {
        leave()
        resolve(pending)
      }
      const queued: Guest = { counted, key, attempt, settle }
      const giveUp = (): void => {
        const pending = attempt()
        settle(pending.exhaustedRule ? pending.refusedBy(counted.rule, 'timeout') : pending)
        // the next one may ask for less
        this.#advance(counted, key)
      }
      const timer = setTimeout(giveUp, Math.min(counted.rule.queueTimeoutMs, LONGEST_TIMER_MS))
      this.#add(counted, key, queued)
      if (signal?.aborted) return abandon()
      signal?.addEventListener('abort', abandon, { once: true })
    })
  }

  /** Places have been given back: lets in those who stood first in line for them. */
  freed(receipts: readonly Receipt[]): void {
    for (const { counted, key, slot } of receipts) {
      const keys = slot === OVERFLOW_SLOT ? [...(this.#lines.get(counted)?.keys() ?? [])] : [key]
      for (const waiting of keys) this.#advance(counted, waiting)
      for (const [queued, house] of [...this.#elsewhere]) {
        if (house === counted) this.#advance(queued.counted, queued.key)
      }
    }
  }

  /** The rules have changed: whoever stands first in a line is judged by the new ones. */
  reconsider(): void {
    for (const [counted, lines] of [...this.#lines]) {
      for (const key of [...lines.keys()]) this.#advance(counted, key)
    }
  }

  #advance(counted: RuleState, key: string): void {
    for (let first = this.#first(counted, key); first; first = this.#first(counted, key)) {
      const pending = first.attempt()
      if (pending.exhaustedRule) {
        if (pending.exhaustedRule === counted) this.#elsewhere.delete(first)
        else this.#elsewhere.set(first, pending.exhaustedRule)
        return
      }
      first.settle(pending)
    }
  }

  #first(counted: RuleState, key: string): Guest | undefined {
    return this.#lines.get(counted)?.get(key)?.values().next().value
  }

  #add(counted: RuleState, key: string, queued: Guest): void {
    const lines = this.#lines.get(counted) ?? new Map<string, Set<Guest>>()
    this.#lines.set(counted, lines)
    lines.set(key, (lines.get(key) ?? new Set()).add(queued))
    counted.waiting++
  }

  #remove(counted: RuleState, key: string, queued: Guest): void {
    const lines = this.#lines.get(counted)
    const line = lines?.get(key)
    if (!line?.delete(queued)) return
    this.#elsewhere.delete(queued)
    counted.waiting--
    if (line.size === 0) lines?.delete(key)
    if (lines?.size === 0) this.#lines.delete(counted)
  }
}
