import { createServer } from 'node:http'
import { createLimiter, normalizeTarget } from 'diana-limiter'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/h' }] })

export const server = createServer(async ({ method = 'GET', url = '/', headers, socket }, response) => {
  const target = normalizeTarget(url)
  if (target === undefined) return response.writeHead(400).end()
  const ip = limiter.addressOf(socket.remoteAddress, headers[limiter.forwardedBy])
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  try {
    const call = { method, path: target.path, query: target.query, ip, host: headers.host, headers }
    const verdict = await limiter.check(call, { signal: gone.signal })
    response.once('close', () => verdict.end({ status: response.writableFinished ? response.statusCode : undefined }))
    if (verdict.allowed) return response.end('hello\n')
    const seconds = Number.isFinite(verdict.retryAfterMs) ? Math.ceil(verdict.retryAfterMs / 1000) : 1
    response.writeHead(verdict.answer.status, { 'Retry-After': seconds }).end()
  } catch (error) {
    // a wait ends this way when the caller leaves
    if (!gone.signal.aborted) response.destroy(error as Error)
  }
})
server.once('close', () => limiter.close())
