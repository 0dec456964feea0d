import { randomUUID } from 'node:crypto'
import type { Call } from 'diana-limiter'

/** A caller who was blocked by hand. */
export interface Block {
  readonly id: string
  readonly rule: string
  /** How the limiter is told who it is. */
  readonly who: Call | string
  /** The id under which callers are told of him, where it is known. */
  readonly caller?: string | undefined
  /** For people, masked. */
  readonly key: string
  /** Milliseconds since 1970. */
  readonly since: number
  readonly until: number
}

const mostBlocks = 1000

/** Who was blocked by hand, as long as this process runs; whoever it is, the block itself is kept by the limiter. */
export class Blocks {
  readonly #blocks = new Map<string, Block>()

  add(block: Omit<Block, 'id'>): Block {
    this.list(block.since)
    const [oldest] = this.#blocks.keys()
    if (this.#blocks.size >= mostBlocks && oldest !== undefined) this.#blocks.delete(oldest)
    const added = { ...block, id: randomUUID() }
    this.#blocks.set(added.id, added)
    return added
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
