import { createLimiter } from 'diana-limiter'
import { diana, rateLimit } from 'diana-limiter/hono'
import { Hono } from 'hono'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
export const app = new Hono()
app.use(diana(limiter))
app.get('/hello', context => context.text('hello'))
const login = { id: 'login', by: 'ip', limit: '1/m' }
app.get('/login', rateLimit(limiter, { rule: login }), context => context.text('welcome'))
