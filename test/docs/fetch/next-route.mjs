import { rateLimit } from 'diana-limiter/fetch'

export const limit = rateLimit({ limit: '2/m', trustProxy: 1 })
export const GET = limit.wrap(async (_request, { params }) => Response.json({ id: (await params).id }))
