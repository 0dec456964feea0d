/** An item of a heap: its score, and its index there. */
export interface Scored {
  score: number
  place: number
}

/** A binary heap whose first has the lowest score; scores only grow. */
export class Heap<Item extends Scored> {
  readonly items: Item[] = []

  get least(): Item | undefined {
    return this.items[0]
  }

  add(item: Item): void {
    item.place = this.items.length
    this.items.push(item)
    for (let parent = this.#parentOf(item); parent && parent.score > item.score; parent = this.#parentOf(item)) {
      this.#swap(item, parent)
    }
  }

  /** Moves an item, whose score has grown, to its place. */
  grew(item: Item): void {
    for (;;) {
      const left = this.items[2 * item.place + 1]
      const right = this.items[2 * item.place + 2]
      const least = right && left && right.score < left.score ? right : left
      if (!least || least.score >= item.score) return
      this.#swap(item, least)
    }
  }

  takeLeast(): Item | undefined {
    const [least] = this.items
    const last = this.items.pop()
    if (least === undefined || last === undefined || last === least) return least
    last.place = 0
    this.items[0] = last
    this.grew(last)
    return least
  }

  #parentOf({ place }: Item): Item | undefined {
    return place === 0 ? undefined : this.items[(place - 1) >> 1]
  }

  #swap(one: Item, other: Item): void {
    const { place } = one
    this.items[other.place] = one
    this.items[place] = other
    one.place = other.place
    other.place = place
  }
}
