import { inheritStates, type Layout, layOut } from './migrate-states.ts'
import type { Table } from './table.ts'

/** A copy of a key's state in a table; it follows the meters of the table when those change. */
export class KeyState {
  #layout: Layout
  #numbers: Float64Array

  constructor(table: Table, slot: number) {
    const { meters, offsets, stride } = table
    const base = table.base(slot)
    this.#layout = { meters, offsets, stride }
    this.#numbers = table.state(slot).slice(base, base + stride)
  }

  take(level: number, cost: number, now: number): void {
    const { meters, offsets } = this.#layout
    const meter = meters[level]!
    const fitting = Math.min(cost, meter.remaining(this.#numbers, offsets[level]!, now))
    if (fitting > 0) meter.take(this.#numbers, offsets[level]!, now, fitting, 0)
  }

  remaining(level: number, now: number): number {
    return this.#layout.meters[level]!.remaining(this.#numbers, this.#layout.offsets[level]!, now)
  }

  /** Reads its numbers as the meters of the table would. */
  use({ meters }: Table, now: number): void {
    if (meters === this.#layout.meters) return
    const after = layOut(meters)
    this.#numbers = inheritStates(this.#numbers, 1, this.#layout, after, now)
    this.#layout = after
  }
}
