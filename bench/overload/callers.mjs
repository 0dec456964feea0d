// Calls that come at random moments, whatever became of those before: an open loop, as the callers of a service are. A caller leaves after a second.
import { createRequire } from 'node:module'

const { Agent, request } = createRequire(new URL('../../packages/gateway/package.json', import.meta.url))('undici')
const PATIENCE_MS = 1000

/** Calls for so many seconds; `share` of them are for /pay. Returns each call as [began, ms, status, path]; status 0: no answer in time. */
export async function callFor(port, perSecond, seconds, share = 0) {
  const agent = new Agent({
    connections: 4000,
    pipelining: 1,
    headersTimeout: PATIENCE_MS,
    connect: { timeout: PATIENCE_MS },
  })
  const calls = []
  const open = new Set()
  const start = performance.now()
  let next = start
  const one = async path => {
    const began = performance.now()
    try {
      const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`, {
        dispatcher: agent,
        signal: AbortSignal.timeout(PATIENCE_MS),
      })
      await body.dump()
      calls.push([began - start, performance.now() - began, statusCode, path])
    } catch {
      calls.push([began - start, performance.now() - began, 0, path])
    }
  }
  while (performance.now() - start < seconds * 1000) {
    while (next <= performance.now()) {
      const call = one(Math.random() < share ? '/pay' : '/')
      open.add(call)
      call.finally(() => open.delete(call))
      next += (-Math.log(1 - Math.random()) / perSecond) * 1000
    }
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await Promise.all(open)
  await agent.destroy()
  return calls
}

/** What was answered in time from one moment to another. */
export function summary(calls, fromMs, untilMs) {
  const within = calls.filter(([at]) => at >= fromMs && at < untilMs)
  const good = within
    .filter(([, , status]) => status === 200)
    .map(([, ms]) => ms)
    .sort((a, b) => a - b)
  const pay = within.filter(([, , , path]) => path === '/pay')
  return {
    goodput: (good.length / (untilMs - fromMs)) * 1000,
    p50: good[Math.floor(good.length / 2)] ?? Number.NaN,
    p99: good[Math.floor(good.length * 0.99)] ?? Number.NaN,
    refused: within.filter(([, , status]) => status === 503).length,
    lost: within.filter(([, , status]) => status === 0).length,
    offered: within.length,
    critical: pay.length === 0 ? undefined : pay.filter(([, , status]) => status === 200).length / pay.length,
  }
}
