import { MOST_CREDIT, type MoveCredit } from '../credits.ts'
import { escapePart } from '../ledger-keys.ts'
import type { TransactionalStore } from '../transactional-store.ts'
import { transact } from './transact.ts'

/** Credit stays until it is used: 300 years. */
const KEPT_US = 1e16

/** Returns what moves credit in a store of the user: a number for each caller, as in credit.lua. */
export function creditInLedgers(store: TransactionalStore, prefix: string): MoveCredit {
  return async (what, caller, permits) => {
    const key = `${prefix}:credit{${escapePart(caller)}}`
    return await transact(store, [key], Date.now, ledgers => {
      const known = Math.floor(Number(ledgers.get(key) ?? 0))
      const before = known >= 0 && known <= MOST_CREDIT ? known : 0
      const moved = movedBy(what, before, permits)
      const left = what === 'add' ? before + moved : before - moved
      const changed = { key, text: left > 0 ? String(left) : undefined, lastsUs: KEPT_US }
      return { changed: moved > 0 ? [changed] : [], result: { moved, left } }
    })
  }
}

function movedBy(what: Parameters<MoveCredit>[0], left: number, permits: number): number {
  if (what === 'add') return left + permits > MOST_CREDIT ? 0 : permits
  if (what === 'take') return left < permits ? 0 : permits
  return Math.min(left, permits)
}
