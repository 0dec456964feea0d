import { createServer } from 'node:http'
import { createLimiter, normalizeTarget, rateLimitHeaders, refusal } from 'diana-limiter'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })

export const server = createServer(async ({ method = 'GET', url = '/', headers, socket }, response) => {
  const target = normalizeTarget(url)
  if (target === undefined) return response.writeHead(400).end()
  const ip = limiter.addressOf(socket.remoteAddress, headers[limiter.forwardedBy])
  const verdict = await limiter.check({ method, ...target, ip, host: headers.host, headers })
  // frees slots and counts failures when the response is over
  response.once('close', () => verdict.end({ status: response.writableFinished ? response.statusCode : undefined }))
  if (!verdict.allowed) {
    const { status, headers: lines, body } = refusal(verdict, Date.now())
    return response.writeHead(status, Object.fromEntries(lines)).end(body)
  }
  for (const [name, value] of rateLimitHeaders(verdict, Date.now())) response.setHeader(name, value)
  response.end('hello\n')
})
