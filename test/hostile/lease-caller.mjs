// A process that calls as one caller, in bursts, and writes a dot for each call that passed, before anything else can happen.
import { writeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from '../../packages/limiter/dist/index.js'

const [url, rule, ms] = process.argv.slice(2)
const limiter = await createLimiter({ store: { redis: url, timeout: '2s' }, rules: [JSON.parse(rule)] })
const ann = { method: 'GET', path: '/sliding-window', attributes: { account: 'ann' } }
writeSync(1, '>')
for (const end = Date.now() + Number(ms); Date.now() < end; ) {
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      if ((await limiter.check(ann)).allowed) writeSync(1, '.')
    }),
  )
  await pause(10)
}
await limiter.close()
