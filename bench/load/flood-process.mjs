// One of several processes that call one Redis: node flood-process.mjs SOCKET SUBJECT IN_FLIGHT MS. It says when it is warm,
// floods when told to, and says how many calls it made.
import { once } from 'node:events'
import { Redis } from 'ioredis'
import { calls } from '../redis-calls.mjs'
import { flood } from './flood.mjs'

const WARM_CALLS = 40_000

const [socket, subject, inFlight, ms] = process.argv.slice(2)
const client = new Redis(socket)
const decide = await calls[subject](client)
// as many calls for every subject: processes that share two cores get little time to compile their code
for (let made = 0; made < WARM_CALLS; ) made += (await flood(decide, { inFlight: Number(inFlight), ms: 400 })).calls
process.send('warm')
await once(process, 'message')
process.send(await flood(decide, { inFlight: Number(inFlight), ms: Number(ms) }), () => process.exit(0))
