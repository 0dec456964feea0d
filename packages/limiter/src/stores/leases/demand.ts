const CELLS = 4096
/** Calls count for about so long. */
const MEMORY_US = 500_000

/**
 * How often keys are met, in a fixed amount of memory: keys are spread over cells, and those of one cell are counted together. A key
 * that shares its cell with others may seem to be met more often, and then gets a lease that it does not need.
 */
export class Demand {
  readonly #calls = new Float64Array(CELLS)
  readonly #metAt = new Float64Array(CELLS)

  /** Counts a call of a key, and returns how often the key is met, per microsecond; 0 if that is no more than `perSecond`. */
  meet(key: string, now: number, perSecond: number): number {
    const cell = cellOf(key)
    const calls = this.#calls[cell]! * Math.exp(Math.min(0, this.#metAt[cell]! - now) / MEMORY_US) + 1
    this.#calls[cell] = calls
    this.#metAt[cell] = now
    const perUs = (calls - 1) / MEMORY_US
    return perUs * 1e6 > perSecond ? perUs : 0
  }
}

/** FNV-1a of the first characters. */
function cellOf(key: string): number {
  let hash = 0x811c9dc5 ^ key.length
  for (let i = 0; i < key.length && i < 32; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 16)) & (CELLS - 1)
}
