import type { Gate } from './judgement.ts'
import type { SharedStores } from './shared-stores.ts'
import { localCharge, type MemoryStore } from './stores/memory.ts'
import { sharedCharge } from './stores/shared-charge.ts'
import { CROWD } from './stores/table.ts'

export interface GateKeeping {
  readonly store: MemoryStore
  readonly shared?: SharedStores | undefined
  readonly now: () => number
}

/**
 * Blocks a caller for a time: here, or for the whole fleet if the rule is counted there. Where as many keys are live as may
 * be, nobody is added: a stranger's block would be every stranger's. Says whether the caller is blocked now.
 */
export function blockCaller(
  { table, counter }: Gate,
  key: string,
  ms: number,
  { store, shared, now }: GateKeeping,
): boolean | Promise<boolean> {
  if (counter && shared) {
    return shared.take([{ ...sharedCharge(counter, table, 'local'), key, cost: ms, mayWait: false }], now())
  }
  if (key !== '' && table.find(key) === CROWD && store.keys >= store.maxKeys) return false
  return store.take([{ ...localCharge(table), key, cost: ms, mayWait: false }], 1, now())
}

/** Lets a blocked caller in again. */
export async function unblockCaller({ table, counter }: Gate, key: string, shared?: SharedStores): Promise<void> {
  table.reset(key)
  if (counter) await shared?.reset(counter, key)
}
