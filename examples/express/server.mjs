// Express: one line limits the whole application, another line one route.
// Run it: npm run build && node examples/express/server.mjs
import { once } from 'node:events'
import { createLimiter } from 'diana-limiter'
import { diana, rateLimit } from 'diana-limiter/express'
import express from 'express'

const limiter = await createLimiter({
  answer: { status: 429 },
  rules: [
    { id: 'whole-system', limit: '1000/s' },
    // used by name only, on the route below; only failed attempts count
    { id: 'login', match: 'none', by: 'account', limit: '3/m', countWhen: 'failed' },
  ],
})

const app = express()
app.use(diana(limiter))

const account = request => ({ account: request.query.user })
app.get('/login', rateLimit(limiter, { rule: 'login', attributes: account }), (request, response) => {
  response.status(request.query.password === 'right' ? 200 : 401).end()
})

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1')
await once(server, 'listening')
export const url = `http://127.0.0.1:${server.address().port}/login?user=ann&password=wrong`
console.log(`listening on ${url}`)

export async function close() {
  server.closeAllConnections()
  server.close()
  await limiter.close()
}
