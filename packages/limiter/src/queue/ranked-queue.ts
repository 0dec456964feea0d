/** A queue with ranks: the highest rank first, and within a rank first come, first served. */
export class RankedQueue<Item extends { readonly rank: number }> {
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
