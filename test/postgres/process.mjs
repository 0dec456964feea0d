// One process of test/postgres/run.mjs: makes calls one after the other, and tells after each how many were admitted.
import { createLimiter } from '../../packages/limiter/dist/index.js'
import { Pool } from './client.mjs'

const [path, user, program, limit, calls] = process.argv.slice(2)
const { PostgresStore } = await import(program)
const pool = new Pool(path, user)
const store = new PostgresStore(pool)
const limiter = await createLimiter({
  rules: [{ id: 'all', limit: `${limit}/h`, lease: 'off' }],
  store: { transact: (keys, change) => store.transact(keys, change), timeout: '5s' },
})
const told = { admitted: 0, refused: 0, healthy: true }
for (let i = 0; i < Number(calls); i++) {
  const { allowed } = await limiter.check({ method: 'GET', path: '/' })
  if (allowed) told.admitted++
  else told.refused++
  told.healthy &&= limiter.status().store.healthy
  process.send(told)
}
await limiter.close()
pool.end()
process.disconnect()
