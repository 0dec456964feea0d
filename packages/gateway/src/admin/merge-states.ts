import type { Limiter } from 'diana-limiter'

type Status = ReturnType<Limiter['status']>
type StoreStatus = NonNullable<Status['store']>
type Outage = StoreStatus['outages'][number]

/** The part of a limiter's status that a process which decides calls reports. */
export type ProcessState = Pick<Status, 'store' | 'keys' | 'maxKeys' | 'overflowing'>

/** Merges several processes into one: what they hold added up, and of the store what the one says that has most trouble with it. */
export function mergeStates(states: readonly ProcessState[]): ProcessState | undefined {
  if (states.length === 0) return undefined
  const stores = states.flatMap(({ store }) => store ?? [])
  const sum = (read: (state: ProcessState) => number) => states.reduce((total, state) => total + read(state), 0)
  return {
    keys: sum(({ keys }) => keys),
    maxKeys: sum(({ maxKeys }) => maxKeys),
    overflowing: [...new Set(states.flatMap(({ overflowing }) => overflowing))],
    store: mergeStores(stores),
  }
}

function mergeStores(stores: readonly StoreStatus[]): StoreStatus | undefined {
  const ill = stores.filter(({ healthy }) => !healthy).sort((a, b) => a.since - b.since)
  const well = stores.toSorted((a, b) => b.since - a.since)
  const [worst] = [...ill, ...well]
  if (worst === undefined) return undefined
  const rules = [...new Set(stores.flatMap(store => store.rules))]
  return { ...worst, rules, outages: mergeOutages(stores.flatMap(({ outages }) => outages)) }
}

/** Times without the store that overlap are one outage, which several processes had. */
function mergeOutages(outages: readonly Outage[]): Outage[] {
  const merged: Outage[] = []
  for (const outage of outages.toSorted((a, b) => a.since - b.since)) {
    const last = merged.at(-1)
    if (last && (last.until === undefined || outage.since <= last.until)) {
      const until =
        last.until === undefined || outage.until === undefined ? undefined : Math.max(last.until, outage.until)
      const counts = {
        calls: last.calls + outage.calls,
        over: last.over + outage.over,
        under: last.under + outage.under,
      }
      merged[merged.length - 1] = { ...last, until, ...counts }
    } else merged.push(outage)
  }
  return merged
}
