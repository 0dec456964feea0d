import { rateLimit } from 'diana-limiter/fetch'
import { Elysia } from 'elysia'

export const limit = rateLimit({ limit: '2/m' })
const app = new Elysia().get('/', () => 'hello')

// Bun.serve({ fetch }) passes its server, which knows the caller's address
export const fetch = limit.wrap(request => app.handle(request))
