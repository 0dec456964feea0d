// Clients that share a pace in Redis, against a real server over HTTP, in real time.
import { createServer } from 'node:http'
import { createLimiter } from 'diana-limiter'
import { createClient } from 'diana-limiter/client'
import { diana } from 'diana-limiter/http'
import { startRedis } from '../chaos/redis.mjs'

const LIMIT = 200

/** `redis` is the URL of one that runs already. */
export async function runFleet({ clients, seconds, warmUpSeconds = 4, redis }) {
  const own = redis === undefined ? await startRedis() : undefined
  await own?.start()
  const limiter = await createLimiter({
    answer: { status: 429 },
    rules: [{ id: 'all', limit: `${LIMIT}/s`, algorithm: 'token-bucket' }],
  })
  const passed = []
  const refusals = []
  const answer = diana(limiter, (_request, response) => {
    passed.push(performance.now())
    response.end('ok')
  })
  const server = createServer((request, response) => {
    response.once('finish', () => {
      if (response.statusCode === 429) refusals.push(performance.now())
    })
    answer(request, response)
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${server.address().port}/items`
  const store = { redis: redis ?? `redis://127.0.0.1:${own.port}` }
  const all = Array.from({ length: clients }, () => createClient({ store, name: 'fleet' }))
  const begin = performance.now()
  let isOver = false
  const goOn = async client => {
    while (!isOver) {
      await client(url).then(
        response => response.text(),
        () => {},
      )
    }
  }
  const going = all.flatMap(client => [goOn(client), goOn(client)])
  await new Promise(resolve => setTimeout(resolve, seconds * 1000))
  isOver = true
  const since = begin + warmUpSeconds * 1000
  const end = performance.now()
  await Promise.all(all.map(client => client.close()))
  await Promise.all(going)
  server.close()
  server.closeAllConnections()
  await limiter.close()
  await own?.close()
  const counted = passed.filter(at => at >= since && at <= end)
  const refused = refusals.filter(at => at >= since && at <= end).length
  const calls = counted.length + refused
  const counts = new Map()
  for (const at of counted) counts.set(Math.floor(at / 100), (counts.get(Math.floor(at / 100)) ?? 0) + 1)
  const used = counted.length / ((LIMIT * (end - since)) / 1000)
  return {
    calls,
    refused,
    ratio: refused / Math.max(1, calls),
    used,
    peak: Math.max(...counts.values()) / (LIMIT / 10),
  }
}
