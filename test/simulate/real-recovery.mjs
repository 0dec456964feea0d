// Real limiters, several in each of a few processes, whose one real Redis is killed and started again.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startRedis } from '../chaos/redis.mjs'

const worker = fileURLToPath(new URL('real-worker.mjs', import.meta.url))

/** One outage of `limiters` limiters in `processes` processes; `moment` is the clock that all processes share. */
export async function realRecovery({ limiters, processes = 3, awayMs = 1500, callsPerSecond = 2 }) {
  const redis = await startRedis()
  const children = []
  try {
    const each = Math.ceil(limiters / processes)
    const url = `redis://127.0.0.1:${redis.port}`
    for (let left = limiters; left > 0; left -= each) {
      const child = fork(worker, [url, String(Math.min(each, left)), String(limiters), String(callsPerSecond)])
      children.push(child)
    }
    await Promise.all(children.map(child => untilSays(child, 'ready')))
    const noticed = Promise.all(children.map(child => untilSays(child, 'noticed')))
    await redis.stop()
    // one that has not noticed would have nothing to come back from
    await Promise.all([noticed, pause(awayMs)])
    await redis.start()
    const backAt = Date.now()
    const reports = await Promise.all(children.map(child => untilSays(child, 'back')))
    const recovered = reports.flatMap(({ recovered }) => recovered)
    return {
      limiters,
      backMs: Math.max(...recovered) - backAt,
      spreadMs: Math.max(...recovered) - Math.min(...recovered),
      redisMs: await scriptMs(redis.client),
      lateMs: Math.max(...reports.map(({ lateMs }) => lateMs)),
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await redis.close()
  }
}

async function untilSays(child, what) {
  for (;;) {
    const [message] = await once(child, 'message')
    if (message.what === what) return message
  }
}

/** How long scripts have run since Redis was started. */
async function scriptMs(client) {
  const stats = String(await client.info('commandstats'))
  const found = [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/g)]
  return found.reduce((sum, [, us]) => sum + Number(us) / 1000, 0)
}
