/** A caller who was refused: at most `refused` times, at least `refused - error` times. */
export interface TopCaller {
  readonly rule: string
  /** The rule's dimensions. */
  readonly by: readonly string[]
  readonly key: string
  readonly refused: number
  readonly error: number
  /** Milliseconds since 1970. */
  readonly lastAt: number
}

interface Entry {
  readonly rule: string
  readonly by: readonly string[]
  readonly key: string
  refused: number
  error: number
  lastAt: number
  /** Its index in the heap. */
  place: number
}

/**
 * The callers refused most, in bounded memory (Space-Saving, Metwally et al. 2005): a caller that finds no room replaces
 * the one refused least and inherits that one's count as its error. Whoever was refused more often than one in `capacity`
 * of all refusals is always among them.
 */
export class TopCallers {
  readonly #capacity: number
  readonly #entries = new Map<string, Map<string, Entry>>()
  /** A heap whose first is refused least. */
  readonly #heap: Entry[] = []

  constructor(capacity = 1024) {
    this.#capacity = capacity
  }

  add(rule: string, by: readonly string[], key: string, at: number): void {
    const known = this.#entries.get(rule)?.get(key)
    if (known) {
      known.refused++
      known.lastAt = at
      this.#sink(known)
      return
    }
    const entry: Entry = { rule, by, key, refused: 1, error: 0, lastAt: at, place: this.#heap.length }
    if (this.#heap.length < this.#capacity) {
      this.#heap.push(entry)
      this.#rise(entry)
    } else {
      const least = this.#heap[0]!
      this.#forget(least)
      entry.refused += least.refused
      entry.error = least.refused
      entry.place = 0
      this.#heap[0] = entry
      this.#sink(entry)
    }
    const ofRule = this.#entries.get(rule) ?? new Map<string, Entry>()
    this.#entries.set(rule, ofRule.set(key, entry))
  }

  /** Those refused most, the first one most; of one rule, or of all. */
  top(count: number, rule?: string): TopCaller[] {
    const all = rule === undefined ? this.#heap : [...(this.#entries.get(rule)?.values() ?? [])]
    return [...all]
      .sort((a, b) => b.refused - a.refused)
      .slice(0, count)
      .map(({ place: _, ...caller }) => caller)
  }

  #forget({ rule, key }: Entry): void {
    const ofRule = this.#entries.get(rule)
    ofRule?.delete(key)
    if (ofRule?.size === 0) this.#entries.delete(rule)
  }

  #rise(entry: Entry): void {
    for (let parent = this.#parentOf(entry); parent && parent.refused > entry.refused; parent = this.#parentOf(entry)) {
      this.#swap(entry, parent)
    }
  }

  #sink(entry: Entry): void {
    for (;;) {
      const left = this.#heap[2 * entry.place + 1]
      const right = this.#heap[2 * entry.place + 2]
      const least = right && left && right.refused < left.refused ? right : left
      if (!least || least.refused >= entry.refused) return
      this.#swap(entry, least)
    }
  }

  #parentOf({ place }: Entry): Entry | undefined {
    return place === 0 ? undefined : this.#heap[(place - 1) >> 1]
  }

  #swap(one: Entry, other: Entry): void {
    const { place } = one
    this.#heap[other.place] = one
    this.#heap[place] = other
    one.place = other.place
    other.place = place
  }
}

/** The callers of several processes together. */
export function mergeCallers(all: readonly (readonly TopCaller[])[], count: number): TopCaller[] {
  const merged = new Map<string, TopCaller>()
  for (const caller of all.flat()) {
    const id = JSON.stringify([caller.rule, caller.key])
    const known = merged.get(id)
    merged.set(id, {
      ...caller,
      refused: caller.refused + (known?.refused ?? 0),
      error: caller.error + (known?.error ?? 0),
      lastAt: Math.max(caller.lastAt, known?.lastAt ?? 0),
    })
  }
  return [...merged.values()].sort((a, b) => b.refused - a.refused).slice(0, count)
}
