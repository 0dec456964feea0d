import { createLimiter } from 'diana-limiter'
import { diana, rateLimit } from 'diana-limiter/express'
import express from 'express'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
export const app = express()
app.use(diana(limiter))
app.get('/hello', (_request, response) => response.send('hello'))
const login = { id: 'login', by: 'ip', limit: '1/m' }
app.get('/login', rateLimit(limiter, { rule: login }), (_request, response) => response.send('welcome'))
