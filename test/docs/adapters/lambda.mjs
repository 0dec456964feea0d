import { rateLimit } from 'diana-limiter/fetch'

// each instance counts by itself: give `store` a Redis, and all count together
export const limit = rateLimit({ limit: '2/m' })

export const handler = async event => {
  const { method, sourceIp } = event.requestContext.http
  const url = `https://${event.requestContext.domainName}${event.rawPath}?${event.rawQueryString}`
  const request = new Request(url, { method, headers: event.headers })
  const refused = await limit(request, sourceIp)
  const response = refused ?? limit.after(request, Response.json({ hello: event.rawPath }))
  return { statusCode: response.status, headers: Object.fromEntries(response.headers), body: await response.text() }
}
