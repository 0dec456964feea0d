// A process that makes some calls of unknown cost at once, each with a reservation. It settles them on request.
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from '../../packages/limiter/dist/index.js'
import { rules } from './rules.mjs'

const [socket, calls, estimate] = process.argv.slice(2)
const limiter = await createLimiter({ store: { redis: socket }, rules })
const call = { method: 'POST', path: '/v1/chat', attributes: { account: 'u1' } }
process.send('ready')

/** Waits for the word that comes next. */
const hears = () => new Promise(heard => process.once('message', heard))

await hears()
const all = await Promise.all(
  Array.from({ length: Number(calls) }, async () => {
    // so that each process gets some
    await pause(Math.random() * 20)
    return limiter.reserve(call, { cost: Number(estimate) })
  }),
)
const allowed = all.filter(reservation => reservation.allowed)
process.send({ admitted: allowed.length })
await hears()
let used = 0
await Promise.all(
  allowed.map(async reservation => {
    const actual = Math.floor(Math.random() * 3 * estimate)
    used += actual
    await reservation.settle(actual)
    // again, which counts nothing
    await reservation.settle(actual + 1)
  }),
)
process.send({ used })
await limiter.close()
process.disconnect()
