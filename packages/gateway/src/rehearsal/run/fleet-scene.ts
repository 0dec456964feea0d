import { createReplayLimiter, type ReplayLimiter } from 'diana-limiter/gateway'
import type { Case } from '../cases/case-file.ts'
import type { RuleSet } from './rule-set.ts'
import type { Scene } from './scene.ts'
import { SharedCounts } from './shared-counts.ts'
import { turn, VirtualTimers } from './virtual-timers.ts'

/** The time for which the processes have known each other when a case begins. */
const BEFORE_US = 10_000_000
/** No call waits for longer than this after the last step. */
const LONGEST_WAIT_US = 86_400e6
const STEP_US = 100_000

/** Processes that count in one store, which may be down for a time: the code of production, on timers that the case moves. */
export async function createFleetScene({ document, extensions }: RuleSet, one: Case): Promise<Scene> {
  const timers = new VirtualTimers()
  const { time } = timers
  time.now = one.beginUs - BEFORE_US
  const store = new SharedCounts()
  const links: { ready: () => void; lost: () => void }[] = []
  const processes: ReplayLimiter[] = []
  timers.install()
  try {
    for (let index = 0; index < one.processes; index++) {
      const link = { ready: () => {}, lost: () => {} }
      links.push(link)
      const process = await createReplayLimiter(document, {
        extensions,
        clock: () => time.now / 1000,
        fleet: {
          process: `process-${String(index + 1).padStart(2, '0')}`,
          store,
          onReady: listener => {
            link.ready = listener
          },
          onLost: listener => {
            link.lost = listener
          },
        },
      })
      // the outage is what the case is about: it is no news
      process.limiter.events.on('store', () => {})
      processes.push(process)
      await process.start()
    }
    await timers.runUntil(one.beginUs)
  } catch (error) {
    timers.uninstall()
    throw error
  }
  for (const { fromUs, toUs } of one.outages) {
    time.at(one.beginUs + fromUs, () => {
      store.isDown = true
      for (const { lost } of links) lost()
    })
    if (toUs === Number.POSITIVE_INFINITY) continue
    time.at(one.beginUs + toUs, () => {
      store.isDown = false
      for (const { ready } of links) ready()
    })
  }
  return {
    processes,
    isAsync: true,
    get nowUs() {
      return time.now
    },
    at: (atUs, run) => void time.at(atUs, run),
    advance: atUs => (atUs > time.now ? timers.runUntil(atUs) : undefined),
    async finish(waits) {
      const endUs = time.now + LONGEST_WAIT_US
      await turn()
      while (waits() && time.now < endUs) await timers.runUntil(time.now + STEP_US)
    },
    async close() {
      // a request to a store that is down would wait without end
      store.isDown = false
      const closing = Promise.all(processes.map(({ limiter }) => limiter.close()))
      let isClosed = false
      void closing.then(() => {
        isClosed = true
      })
      while (!isClosed) await timers.runUntil(time.now + STEP_US)
      timers.uninstall()
      await closing
    },
  }
}
