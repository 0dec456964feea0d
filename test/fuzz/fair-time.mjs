import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'

/**
 * Measures how long the gateway takes, on a machine that has other work: without the time in which this process was busy, and
 * without the time in which the gateway's processes were ready to run and had no core. Returns a function that tells the
 * milliseconds since the start.
 */
export function startFairTime({ pids }) {
  const began = performance.now()
  const busy = performance.eventLoopUtilization()
  const waitedBefore = waitedMs([process.pid, ...pids])
  return () => {
    const own = performance.eventLoopUtilization(busy).active
    const stolen = waitedMs([process.pid, ...pids]) - waitedBefore
    return Math.max(0, performance.now() - began - own - stolen)
  }
}

/** How long these processes have waited for a core since they began. */
function waitedMs(pids) {
  return pids.reduce((sum, pid) => {
    try {
      return sum + Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e6
    } catch {
      return sum
    }
  }, 0)
}
