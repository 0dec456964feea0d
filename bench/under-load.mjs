import { load } from './load.mjs'

/** What a server spends on a call once it is warm, and what its callers see. */
export async function underLoad(server, connections) {
  await load(server.port, { seconds: 2, connections })
  const before = await server.cpuMicroseconds()
  const { calls, callsPerSecond, p50Ms, p99Ms } = await load(server.port, { seconds: 2, connections })
  const value = ((await server.cpuMicroseconds()) - before) / calls
  return { value, 'calls/s': callsPerSecond, 'p50, ms': p50Ms, 'p99, ms': p99Ms }
}
