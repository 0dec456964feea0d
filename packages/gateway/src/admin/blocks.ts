/** A caller who was blocked by hand. */
export interface Block extends KeptBlock {
  /** The id under which the caller and their block are reported. */
  readonly id: string
  /** True if it must be set again after a restart: a rule that is counted in Redis has its blocks there. */
  readonly isKept: boolean
}

/** A block as it is kept over a restart. */
export interface KeptBlock {
  readonly rule: string
  /** The dimensions that the rule counted by. */
  readonly by: readonly string[]
  readonly key: string
  /** Milliseconds since 1970. */
  readonly since: number
  readonly until: number
}

export const mostBlocks = 1000

/** Since when callers are blocked who were blocked through this API; the blocks themselves are kept by the limiter. */
export class Blocks {
  readonly #blocks = new Map<string, Block>()
  readonly #onChange: (kept: () => KeptBlock[]) => void

  /** `onChange` gets those that must survive a restart. */
  constructor(onChange: (kept: () => KeptBlock[]) => void = () => {}) {
    this.#onChange = onChange
  }

  add(block: Block): void {
    for (const { id, until } of this.#blocks.values()) if (until <= block.since) this.#blocks.delete(id)
    const [oldest] = this.#blocks.keys()
    if (this.#blocks.size >= mostBlocks && oldest !== undefined) this.#blocks.delete(oldest)
    this.#blocks.delete(block.id)
    this.#blocks.set(block.id, block)
    this.#onChange(this.#kept)
  }

  find(id: string): Block | undefined {
    return this.#blocks.get(id)
  }

  remove(id: string): void {
    if (this.#blocks.delete(id)) this.#onChange(this.#kept)
  }

  /** Returns when a block ends that lasts for another `leftMs`: as it was answered, if it was set through this API. */
  untilOf(id: string, now: number, leftMs: number): number {
    const until = this.#blocks.get(id)?.until ?? 0
    return until > now ? until : Math.round(now + leftMs)
  }

  readonly #kept = (): KeptBlock[] =>
    [...this.#blocks.values()]
      .filter(({ isKept }) => isKept)
      .map(({ rule, by, key, since, until }) => ({ rule, by, key, since, until }))
}
