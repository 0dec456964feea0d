import type { Uncertainty } from './floor.ts'

/** Bounds when callers over a limit can have been blocked, and when they surely were. */
export class BlockBounds {
  readonly #leastUs: number
  readonly #mostUs: number
  readonly #memoryUs: number
  readonly #uncertainty: Uncertainty
  readonly #mayLastUntil: number[] = []
  /** Since when a refusal was possible, if nothing from before matters; 0 if that is not so. */
  readonly #since: number[] = []
  readonly #surelyFrom: number[] = []
  readonly #surelyUntil: number[] = []

  /** `blockUs` is how long a block lasts at the least and at the most. */
  constructor(blockUs: { readonly least: number; readonly most: number }, memoryUs: number, uncertainty: Uncertainty) {
    this.#leastUs = blockUs.least
    this.#mostUs = blockUs.most
    this.#memoryUs = memoryUs
    this.#uncertainty = uncertainty
  }

  /** True if calls that came at x may be refused; `isOver` is true if the limit may refuse them. */
  mayRefuse(slot: number, x: number, isOver: boolean): boolean {
    const { widthUs, aheadUs } = this.#uncertainty
    const until = this.#mayLastUntil[slot] ?? 0
    if (!isOver) return x - aheadUs < until
    if (x >= until) this.#since[slot] = x - until > this.#memoryUs + this.#mostUs + widthUs ? x : 0
    this.#mayLastUntil[slot] = x + widthUs + aheadUs + this.#mostUs
    return true
  }

  isBlocked(slot: number, x: number): boolean {
    return x >= (this.#surelyFrom[slot] ?? 0) && x + this.#uncertainty.widthUs <= (this.#surelyUntil[slot] ?? 0)
  }

  /** Begins a block because at least one call was refused up to x: it lasts at least as if that call were the first possible one. */
  begin(slot: number, x: number): void {
    const since = this.#since[slot] ?? 0
    if (since === 0 || this.#uncertainty.aheadUs > 0) return
    this.#surelyFrom[slot] = x + this.#uncertainty.widthUs
    this.#surelyUntil[slot] = since + this.#leastUs
    // when the next block begins is not known
    this.#since[slot] = 0
  }

  forget(slot: number): void {
    this.#mayLastUntil[slot] = 0
    this.#since[slot] = 0
    this.#surelyUntil[slot] = 0
  }
}
