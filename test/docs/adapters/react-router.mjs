import { rateLimit } from 'diana-limiter/fetch'

export const limit = rateLimit({ limit: '2/m', trustProxy: 1 })
export const middleware = [
  async ({ request }, next) => {
    const refused = await limit(request)
    return refused ?? limit.after(request, await next())
  },
]
