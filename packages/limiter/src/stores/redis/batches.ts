import type { RedisCounter } from './counter.ts'
import type { ScriptRequest } from './script-request.ts'
import { slotOf } from './slot.ts'

/**
 * So many calls or charges at most run in one function call, for it must not keep the server for long; one call is never cut.
 * Few enough that, with many calls under way, the server judges one batch while this process reads the answers to another.
 */
export const BATCH_CALLS = 32
const BATCH_CHARGES = 128

/** Things put together by the slot of a Cluster that they belong to, in their order. */
export function bySlot<T>(things: readonly T[], keyed: (thing: T) => { counter: RedisCounter; key: string }): T[][] {
  const groups = new Map<number, T[]>()
  for (const thing of things) {
    const { counter, key } = keyed(thing)
    const slot = slotOf(counter.ledgerKeyOf(key))
    const group = groups.get(slot)
    if (group) group.push(thing)
    else groups.set(slot, [thing])
  }
  return [...groups.values()]
}

/** Cuts what is pending into batches of few charges; one that has many is a batch of its own. */
export function batchesOf<Request extends ScriptRequest>(pending: readonly Request[]): Request[][] {
  const batches: Request[][] = []
  let batch: Request[] = []
  let room = 0
  for (const one of pending) {
    const size = one.charges.length
    if (size > room || batch.length === BATCH_CALLS) {
      batch = []
      batches.push(batch)
      room = BATCH_CHARGES
    }
    batch.push(one)
    room -= size
  }
  return batches
}
