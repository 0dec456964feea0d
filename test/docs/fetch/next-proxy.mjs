import { rateLimit } from 'diana-limiter/fetch'

export const limit = rateLimit({ limit: '2/m', trustProxy: 1 })
export const proxy = request => limit(request)
export const config = { matcher: '/api/:path*' }
