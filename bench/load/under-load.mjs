import { load } from './load.mjs'

const WARM_CALLS = 30_000
const WARM_SECONDS_AT_MOST = 5

/** What a server spends on a call once it is warm, and what its callers see. */
export async function underLoad(server, connections) {
  await warmUp(server, connections)
  return await sample(server, connections, 2)
}

export async function warmUp({ port }, connections) {
  let warm = 0
  for (let second = 0; warm < WARM_CALLS && second < WARM_SECONDS_AT_MOST; second++) {
    warm += (await load(port, { seconds: 1, connections })).calls
  }
}

export async function sample({ port, cpuMicroseconds }, connections, seconds) {
  const before = await cpuMicroseconds()
  const { calls, callsPerSecond, p50Ms, p99Ms } = await load(port, { seconds, connections })
  if (calls === 0) throw new Error('no call was answered: the machine is too busy')
  const value = ((await cpuMicroseconds()) - before) / calls
  return { value, 'calls/s': callsPerSecond, 'p50, ms': p50Ms, 'p99, ms': p99Ms }
}
