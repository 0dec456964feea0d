// A fleet comes back to its store: the code that runs in production, on virtual time and a simulated network.

import { seededRandom } from '../helpers/seeded-random.mjs'
import { SimulatedStore } from './store.mjs'
import { VirtualTime } from './virtual-time.mjs'

/** As in `FailoverStore`. */
const [PROBE_MS, STEP_MS] = [50, 250]
/** A client tries to connect again after so long at most. */
const RECONNECT_MS = 400
const DEBTS_EACH = 3
const LONGEST_MS = 60_000

/**
 * One outage of a fleet of `processes`. `parts` holds the classes under test, `Recovery` and `Fleet`. `kind` is how the
 * store is away: `refused`, so that processes know when they are connected again, or `silent`. `dead` processes never come back.
 */
export async function simulateRecovery({ Recovery, Fleet }, options) {
  const { processes, seed, latencyMs = 1, loss = 0, kind = 'refused', dead = 0 } = options
  const time = new VirtualTime()
  const random = seededRandom(seed)
  const backAt = 8000 + random() * 3000
  const store = new SimulatedStore(time, random, { latencyMs, loss, backAt: 0 })
  const fleets = Array.from({ length: processes }, () => {
    return new Fleet(store.registryOf(Math.floor(random() * 2 ** 52).toString(16)), { assumed: 1, onChange: () => {} })
  })
  // twice, so that each has heard of all
  for (let round = 0; round < 2; round++) {
    for (const fleet of fleets) time.after(random() * 1000, () => void fleet.register(time.now))
    await time.run(time.now + 2000 + RECONNECT_MS, () => false)
  }
  const sizes = new Set(fleets.map(fleet => fleet.part.size))
  if (sizes.size !== 1 || !sizes.has(processes)) throw new Error(`the fleet was ${[...sizes]}, not ${processes}`)
  store.backAt = backAt
  store.busyMs.clear()
  store.commands = 0
  const recoveredAt = []
  for (const fleet of fleets.slice(dead)) {
    const connectedAt = kind === 'refused' ? backAt + random() * RECONNECT_MS : 0
    let debts = DEBTS_EACH
    const ask = async (answer, ms) => {
      if (time.now < connectedAt) throw new Error('connect ECONNREFUSED')
      return await time.within(answer(), ms)
    }
    const recovery = new Recovery(
      {
        fleetSize: () => fleet.part.size,
        probe: () => ask(() => fleet.probeMembers(0), PROBE_MS),
        gather: async withinMs => (await ask(() => fleet.probeMembers(withinMs), STEP_MS)).isComplete,
        rejoin: async withinMs => {
          for (; debts > 0; debts--) await store.catchUp()
          return await ask(() => fleet.return('one', withinMs), STEP_MS)
        },
        reconnect: () => {},
        failed: () => {},
        recovered: () => recoveredAt.push(time.now),
      },
      { now: () => time.now, pause: (ms, signal) => time.pause(ms, signal), random },
    )
    time.after(random() * 50, () => recovery.begin())
    if (kind === 'refused') time.at(connectedAt, () => recovery.wake())
  }
  await time.run(backAt + LONGEST_MS, () => recoveredAt.length === processes - dead)
  const last = Math.max(...recoveredAt)
  return {
    ...{ processes, seed },
    missing: processes - dead - recoveredAt.length,
    backMs: last - backAt,
    spreadMs: last - Math.min(...recoveredAt),
    commands: store.commands,
    busiestMs: Math.max(...store.busyMs.values()),
  }
}
