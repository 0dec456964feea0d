import type { CountedRule, Judgement, Receipt } from '../decision/pending-verdict.ts'
import { CROWD } from '../stores/memory/table.ts'

interface Guest {
  readonly counted: CountedRule
  readonly key: string
  /** Judges the call again; the judgement tells whether the house is still full. */
  attempt(): Judgement
  settle(judgement: Judgement): void
}

/** A timer that is set for longer goes off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Calls that wait for a place no clock frees: first come, first served, per rule and key. Nothing is charged while a
 * call stands in line; when a place is given back, the first in line is judged anew.
 */
export class Line {
  readonly #lines = new Map<CountedRule, Map<string, Set<Guest>>>()
  /** Those who are first in their line and find another house full, and which. */
  readonly #elsewhere = new Map<Guest, CountedRule>()

  get isEmpty(): boolean {
    return this.#lines.size === 0
  }

  isWaiting(counted: CountedRule, key: string): boolean {
    return this.#lines.get(counted)?.has(key) ?? false
  }

  /** Resolves when a place is free, or after the rule's timeout to whatever the judgement is then. */
  join(counted: CountedRule, key: string, attempt: () => Judgement, signal?: AbortSignal): Promise<Judgement> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abandon)
        this.#remove(counted, key, guest)
      }
      const abandon = (): void => {
        leave()
        reject(signal?.reason)
        this.#advance(counted, key)
      }
      const settle = (judgement: Judgement): void => {
        leave()
        resolve(judgement)
      }
      const guest: Guest = { counted, key, attempt, settle }
      const giveUp = (): void => {
        const judgement = attempt()
        settle(judgement.fullHouse ? judgement.refusedBy(counted.rule, 'timeout') : judgement)
        // the next one may ask for less
        this.#advance(counted, key)
      }
      const timer = setTimeout(giveUp, Math.min(counted.rule.queueTimeoutMs, LONGEST_TIMER_MS))
      this.#add(counted, key, guest)
      if (signal?.aborted) return abandon()
      signal?.addEventListener('abort', abandon, { once: true })
    })
  }

  /** Places have been given back: lets in those who stood first in line for them. */
  freed(receipts: readonly Receipt[]): void {
    for (const { counted, key, slot } of receipts) {
      const keys = slot === CROWD ? [...(this.#lines.get(counted)?.keys() ?? [])] : [key]
      for (const waiting of keys) this.#advance(counted, waiting)
      for (const [guest, house] of [...this.#elsewhere]) {
        if (house === counted) this.#advance(guest.counted, guest.key)
      }
    }
  }

  /** The rules have changed: whoever stands first in a line is judged by the new ones. */
  reconsider(): void {
    for (const [counted, lines] of [...this.#lines]) {
      for (const key of [...lines.keys()]) this.#advance(counted, key)
    }
  }

  #advance(counted: CountedRule, key: string): void {
    for (let first = this.#first(counted, key); first; first = this.#first(counted, key)) {
      const judgement = first.attempt()
      if (judgement.fullHouse) {
        if (judgement.fullHouse === counted) this.#elsewhere.delete(first)
        else this.#elsewhere.set(first, judgement.fullHouse)
        return
      }
      first.settle(judgement)
    }
  }

  #first(counted: CountedRule, key: string): Guest | undefined {
    return this.#lines.get(counted)?.get(key)?.values().next().value
  }

  #add(counted: CountedRule, key: string, guest: Guest): void {
    const lines = this.#lines.get(counted) ?? new Map<string, Set<Guest>>()
    this.#lines.set(counted, lines)
    lines.set(key, (lines.get(key) ?? new Set()).add(guest))
    counted.waiting++
  }

  #remove(counted: CountedRule, key: string, guest: Guest): void {
    const lines = this.#lines.get(counted)
    const line = lines?.get(key)
    if (!line?.delete(guest)) return
    this.#elsewhere.delete(guest)
    counted.waiting--
    if (line.size === 0) lines?.delete(key)
    if (lines?.size === 0) this.#lines.delete(counted)
  }
}
