import { rateLimit } from 'diana-limiter/fetch'

const limit = rateLimit({ limit: '2/m', peer: request => request.headers.get('cf-connecting-ip') })
export default { fetch: limit.wrap(request => new Response(`hello, ${new URL(request.url).pathname}`)) }
