// Many clients that have more to ask than a server allows, in virtual time.
import { createClient } from 'diana-limiter/client'
import { VirtualClock } from './virtual-clock.mjs'

const START = Date.UTC(2026, 0, 1)
const JOBS_AT_ONCE = 4

/** Runs clients against a server for some windows; returns what became of their calls. */
export async function simulate({ make, limit, windowMs }, { clients, windows, warmUp = 0, seed = 1, latencyMs = 40 }) {
  const random = randomOf(seed)
  const clock = new VirtualClock(START)
  const server = make(() => clock.now)
  const sent = []
  const refusals = []
  try {
    await server.ready?.()
    const fetch = async (_input, { signal } = {}) => {
      await clock.pause(latencyMs * (0.5 + random()))
      signal?.throwIfAborted()
      const at = clock.now
      const response = await server.serve(new Request('http://api.example/items'))
      if (response.status === 429) refusals.push(at - START)
      else sent.push(at - START)
      await clock.pause(latencyMs * (0.5 + random()))
      return response
    }
    const all = Array.from({ length: clients }, () => createClient({ fetch, clock: () => clock.now, random }))
    let isOver = false
    for (const client of all) {
      for (let i = 0; i < JOBS_AT_ONCE; i++) {
        const goOn = async () => {
          // they are not started in one millisecond, as no fifty processes are
          await clock.pause(random() * 2000)
          while (!isOver)
            await client('http://api.example/items').then(
              response => response.text(),
              () => {},
            )
        }
        void goOn()
      }
    }
    await clock.runUntil(START + windows * windowMs)
    isOver = true
    for (const client of all) await client.close()
  } finally {
    clock.restore()
    await server.close?.()
  }
  return figures({ sent, refusals, warmUp, limit, windowMs, windows })
}

/** What became of the calls after the windows of the warm-up. */
function figures({ sent, refusals, warmUp, limit, windowMs, windows }) {
  const since = warmUp * windowMs
  const passed = sent.filter(at => at >= since)
  const refused = refusals.filter(at => at >= since).length
  // the busiest hundredth of a window, compared with an even rate
  const step = windowMs / 100
  const counts = new Map()
  for (const at of passed) counts.set(Math.floor(at / step), (counts.get(Math.floor(at / step)) ?? 0) + 1)
  const peak = Math.max(0, ...counts.values()) / Math.max(1, limit / 100)
  const calls = passed.length + refused
  return {
    calls,
    refused,
    ratio: refused / Math.max(1, calls),
    used: passed.length / (limit * (windows - warmUp)),
    peak,
  }
}

function randomOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
