import { rateLimit } from 'diana-limiter/fetch'

export const limit = rateLimit({ limit: '2/m' })
export const onRequest = async ({ request, clientAddress }, next) => {
  const refused = await limit(request, clientAddress)
  return refused ?? limit.after(request, await next())
}
