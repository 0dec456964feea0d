// Fastify: the filter is a plugin; a route may have a hook of its own.
// Run it: npm run build && node examples/fastify/server.mjs
import { createLimiter } from 'diana-limiter'
import { diana, rateLimit, verdictOf } from 'diana-limiter/fastify'
import Fastify from 'fastify'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '100/m' }] })

const app = Fastify()
await app.register(diana(limiter))
app.addHook('onClose', () => limiter.close())

// ten tokens a minute; each call is charged four, and settles its real cost when that is known
const tokens = rateLimit(limiter, { rule: { id: 'tokens', by: 'ip', limit: '10/m' }, cost: 4 })
app.get('/chat', { onRequest: tokens }, async request => {
  const answer = 'three tokens used'
  verdictOf(request)?.settle(answer.split(' ').length)
  return answer
})

export const url = `${await app.listen({ port: process.env.PORT ?? 3000, host: '127.0.0.1' })}/chat`
console.log(`listening on ${url}`)

export const close = () => app.close()
