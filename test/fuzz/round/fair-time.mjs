import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

/**
 * Measures how long the gateway takes, on a machine that has other work: without the time in which this process was busy, and
 * without the time in which a process was ready to run and had no core (the longest of these, since they overlap). Returns a function that tells the
 * milliseconds since the start.
 */
export function startFairTime({ pids }) {
  const began = performance.now()
  const busy = performance.eventLoopUtilization()
  const all = [process.pid, ...pids]
  const waited = all.map(waitedMs)
  return () => {
    const own = performance.eventLoopUtilization(busy).active
    const stolen = all.map((pid, index) => waitedMs(pid) - waited[index])
    return performance.now() - began - Math.max(own, ...stolen)
  }
}

/** How long a process has waited for a core since it began. */
function waitedMs(pid) {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}
