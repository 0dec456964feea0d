import { within } from '../../common/within.ts'
import { FailedTransaction } from '../store-error.ts'
import type { LedgerChange, LedgerWrite, StoredLedgers, TransactionalStore } from '../transactional-store.ts'

/** A transaction that has taken this long has failed: it may still end, but changes nothing any more. */
export const GIVE_UP_MS = 10_000
/** Ledgers are kept a little longer than they matter. */
const LINGER_MS = 1000

/** What becomes of one ledger: nothing if it is undefined. */
export interface Changed {
  readonly key: string
  readonly text: string | undefined
  /** How long it matters, in microseconds. */
  readonly lastsUs: number
}

/**
 * Runs one transaction; returns what `decide` returned in the end. `now` is in whole microseconds. If `decide` throws, nothing is
 * written, and neither if the transaction takes too long.
 */
export async function transact<Result>(
  store: TransactionalStore,
  keys: readonly string[],
  clock: () => number,
  decide: (ledgers: StoredLedgers, now: number) => { readonly changed: readonly Changed[]; readonly result: Result },
): Promise<Result> {
  let decided: { readonly result: Result } | undefined
  let isOver = false
  const change: LedgerChange = (ledgers, nowMs) => {
    if (isOver) throw new Error('the transaction has taken too long')
    decided = undefined
    const { changed, result } = decide(ledgers, nowMs === undefined ? clock() : microseconds(nowMs))
    const writes = changed.flatMap(({ key, text, lastsUs }): LedgerWrite[] => {
      if (text === undefined && typeof ledgers.get(key) !== 'string') return []
      return [{ key, ledger: text, keepMs: Math.max(0, Math.ceil(lastsUs / 1000)) + LINGER_MS }]
    })
    decided = { result }
    return writes
  }
  try {
    await within((async () => await store.transact(keys, change))(), GIVE_UP_MS)
    if (decided === undefined) throw new Error('transact has ended, and has not called change')
  } catch (error) {
    throw new FailedTransaction(error)
  } finally {
    isOver = true
  }
  return (decided as { readonly result: Result }).result
}

function microseconds(ms: unknown): number {
  if (typeof ms === 'number' && Number.isFinite(ms) && ms >= 0) return Math.floor(ms * 1000)
  throw new TypeError(`transact gives change the time ${String(ms)}: give milliseconds since 1970, or nothing`)
}
