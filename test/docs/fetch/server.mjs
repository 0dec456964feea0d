import { rateLimit } from 'diana-limiter/fetch'

export const limit = rateLimit({ limit: '2/m' })
export default { fetch: limit.wrap(request => new Response(`hello, ${new URL(request.url).pathname}`)) }
