import { rateLimit } from 'diana-limiter/fetch'

export const limit = rateLimit({ limit: '2/m' })
export const handle = async ({ event, resolve }) => {
  const refused = await limit(event.request, event)
  return refused ?? limit.after(event.request, await resolve(event))
}
