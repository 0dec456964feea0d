/** A caller who was blocked by hand. */
export interface Block {
  /** The id under which the caller and their block are reported. */
  readonly id: string
  /** Milliseconds since 1970. */
  readonly since: number
  readonly until: number
}

const mostBlocks = 1000

/** Since when callers are blocked who were blocked through this API; the blocks themselves are kept by the limiter. */
export class Blocks {
  readonly #blocks = new Map<string, Block>()

  add(block: Block): void {
    for (const { id, until } of this.#blocks.values()) if (until <= block.since) this.#blocks.delete(id)
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

  /** When a block ends that lasts for another `leftMs`: as it was answered, if it was set through this API. */
  untilOf(id: string, now: number, leftMs: number): number {
    const until = this.#blocks.get(id)?.until ?? 0
    return until > now ? until : Math.round(now + leftMs)
  }
}
