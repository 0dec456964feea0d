import type { Outage, StoreStatus } from '../failover/store-health.ts'
import type { Cause, StoreCode } from '../store-error-causes.ts'

type Words = Pick<Cause, 'what' | 'remedy'>

/** Words for a counting process of this machine, in place of those for Redis. */
const words: Partial<Record<StoreCode, Words>> = {
  STORE_LOST_COUNTS: {
    what: 'the counting process started again without counts',
    remedy: 'the workers report their counts to it, and then count together again',
  },
  STORE_SILENT: {
    what: 'the counting process does not answer in time',
    remedy: 'check the load of this machine; a counting process that stays silent is replaced',
  },
}
const AWAY: Words = {
  what: 'the counting process cannot be reached',
  remedy: 'it is started again at once; if it does not come back, the log has its last words',
}

/** Returns a status of the machine's store, in words about a counting process. */
export function countingStatus(status: StoreStatus): StoreStatus {
  return {
    ...status,
    ...(status.code !== undefined && wordsOf(status.code)),
    outages: status.outages.map((outage): Outage => ({ ...outage, ...wordsOf(outage.code) })),
  }
}

function wordsOf(code: StoreCode): Words {
  return words[code] ?? AWAY
}
