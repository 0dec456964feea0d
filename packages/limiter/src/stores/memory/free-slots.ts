const BLOCK = 1024

/** Slots to be used again. An array of a million grows by being copied whole, a pause; blocks are only added. */
export class FreeSlots {
  readonly #blocks: number[][] = []

  push(slot: number): void {
    const last = this.#blocks.at(-1)
    if (last !== undefined && last.length < BLOCK) last.push(slot)
    else this.#blocks.push([slot])
  }

  pop(): number | undefined {
    const last = this.#blocks.at(-1)
    const slot = last?.pop()
    if (last?.length === 0) this.#blocks.pop()
    return slot
  }
}
