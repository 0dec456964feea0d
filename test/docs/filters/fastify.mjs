import { createLimiter } from 'diana-limiter'
import { diana, rateLimit } from 'diana-limiter/fastify'
import Fastify from 'fastify'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
export const app = Fastify()
await app.register(diana(limiter))
app.addHook('onClose', () => limiter.close())
app.get('/hello', async () => 'hello')
const login = { id: 'login', by: 'ip', limit: '1/m' }
app.get('/login', { onRequest: rateLimit(limiter, { rule: login }) }, async () => 'welcome')
