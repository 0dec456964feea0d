/** How often each number came; numbers above 999 are rounded up to three digits, so that there are few of them. */
export class NumberCounts {
  readonly #counts = new Map<number, number>()

  add(value: number, times = 1): void {
    const rounded = roundUp(value)
    this.#counts.set(rounded, (this.#counts.get(rounded) ?? 0) + times)
  }

  get size(): number {
    let size = 0
    for (const times of this.#counts.values()) size += times
    return size
  }

  /** Numbers in rising order, each with how often it came. */
  sorted(): [value: number, times: number][] {
    return [...this.#counts].sort(([a], [b]) => a - b)
  }
}

function roundUp(value: number): number {
  if (value < 1000) return value
  const step = 10 ** (Math.floor(Math.log10(value)) - 2)
  return Math.ceil(value / step) * step
}
