/** A caller who was blocked by hand. */
export interface Block {
  /** The id under which the caller and their block are reported. */
  readonly id: string
  /** The id by which the caller was named, if they were. */
  readonly caller?: string | undefined
  /** Milliseconds since 1970. */
  readonly since: number
  readonly until: number
}

const mostBlocks = 1000

/** Since when callers are blocked who were blocked through this API; the blocks themselves are kept by the limiter. */
export class Blocks {
  readonly #blocks = new Map<string, Block>()

  add(block: Block): void {
    this.list(block.since)
    const [oldest] = this.#blocks.keys()
    if (this.#blocks.size >= mostBlocks && oldest !== undefined) this.#blocks.delete(oldest)
    this.#blocks.set(block.id, block)
  }

  find(id: string): Block | undefined {
    return this.#blocks.get(id)
  }

  remove(id: string): void {
    this.#blocks.delete(id)
  }

  /** Those that last beyond `now`, the newest first; the others are forgotten. */
  list(now: number): Block[] {
    for (const { id, until } of this.#blocks.values()) if (until <= now) this.#blocks.delete(id)
    return [...this.#blocks.values()].reverse()
  }
}
