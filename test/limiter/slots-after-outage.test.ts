import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const ann = { method: 'GET', path: '/', attributes: { account: 'ann' } }

/** Stops the server for a while, as a machine does that is out of memory; its connections stay open. */
async function freeze(redis: RedisServer, ms: number): Promise<void> {
  const pid = Number(/process_id:(\d+)/.exec(await redis.client.info('server'))![1])
  process.kill(pid, 'SIGSTOP')
  setTimeout(() => process.kill(pid, 'SIGCONT'), ms)
}

async function start() {
  const redis = await startRedis()
  closing.push(() => redis.close())
  const limiter = await createLimiter({
    store: { redis: `redis://${redis.authority}`, timeout: '100ms' },
    rules: [{ id: 'slots', by: 'account', limit: 4, algorithm: 'concurrency' }],
  })
  closing.push(() => limiter.close())
  return { redis, limiter }
}

it.each(['stopped', 'frozen'] as const)(
  'concurrency slots of calls that end while Redis is %s are free as soon as it is back',
  async how => {
    const { redis, limiter } = await start()
    const held = [
      await limiter.check(ann),
      await limiter.check(ann),
      await limiter.check(ann),
      await limiter.check(ann),
    ]
    expect(held.every(({ allowed }) => allowed)).toBe(true)
    expect((await limiter.check(ann)).allowed).toBe(false)
    if (how === 'stopped') await redis.stop('SIGKILL')
    else await freeze(redis, 600)
    for (const verdict of held) await verdict.release()
    await pause(600)
    if (how === 'stopped') await redis.start()
    await expect.poll(() => limiter.status().store?.healthy, { timeout: 5000, interval: 20 }).toBe(true)
    const remaining = async (): Promise<number> => (await limiter.peek(ann)).decisions[0]!.remaining
    await expect.poll(remaining, { timeout: 700, interval: 20 }).toBe(4)
  },
)

it.each([600, 1500])('after a freeze of %i ms under load, no slot is taken that no call holds', async ms => {
  const { redis, limiter } = await start()
  let isOver = false
  const work = async (): Promise<void> => {
    while (!isOver) {
      const verdict = await limiter.check(ann)
      await pause(5)
      if (verdict.allowed) await verdict.release()
    }
  }
  const working = Array.from({ length: 8 }, work)
  await pause(200)
  await freeze(redis, ms)
  await pause(ms + 100)
  await expect.poll(() => limiter.status().store?.healthy, { timeout: 5000, interval: 20 }).toBe(true)
  isOver = true
  await Promise.all(working)
  const remaining = async (): Promise<number> => (await limiter.peek(ann)).decisions[0]!.remaining
  await expect.poll(remaining, { timeout: 700, interval: 20 }).toBe(4)
})
