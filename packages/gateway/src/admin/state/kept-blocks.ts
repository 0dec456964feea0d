import { isDeepStrictEqual } from 'node:util'
import type { Limiter } from 'diana-limiter'
import { z } from 'diana-limiter/schema'
import { type Blocks, type KeptBlock, mostBlocks } from '../blocks.ts'
import { idOf } from '../operations/callers.ts'

const blockShape = z.object({
  rule: z.string().min(1).max(80),
  by: z.array(z.string().max(256)).max(64),
  key: z.string().max(16_384),
  since: z.number().min(0),
  until: z.number().min(0),
})

/** Returns the blocks in a file; whatever is not one is left out. */
export function parseBlocks(value: unknown): KeptBlock[] {
  const { blocks } = (value ?? {}) as { readonly blocks?: unknown }
  if (!Array.isArray(blocks)) return []
  return blocks.slice(-mostBlocks).flatMap(one => blockShape.safeParse(one).data ?? [])
}

/** Puts blocks in force that have not ended and whose rules still count by the same. */
export function restoreBlocks(kept: readonly KeptBlock[], blocks: Blocks, limiter: Limiter, now: number): void {
  const rules = new Map(limiter.rules.map(rule => [rule.id, rule]))
  for (const block of kept) {
    const { rule: id, by, key, until } = block
    const rule = rules.get(id)
    const leftMs = Math.ceil(until - now)
    if (leftMs < 1 || rule?.count !== 'local' || rule.block === undefined || !isDeepStrictEqual(rule.by, by)) continue
    blocks.add({ ...block, id: idOf(block), isKept: true })
    // at once if this process counts; a block that cannot be set is none
    limiter.block(id, { key }, leftMs).catch(() => blocks.remove(idOf(block)))
  }
}
