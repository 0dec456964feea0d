// Compiled against the packed types, as ES module and as CommonJS, in each way that an application may resolve them.
import { createLimiter, DianaError, type Limiter, type Verdict } from 'diana-limiter'
import { diana, rateLimit } from 'diana-limiter/express'
import { rateLimit as onFetch } from 'diana-limiter/fetch'
import { guard } from 'diana-limiter/http'
import type { Express } from 'express'

export async function protect(app: Express): Promise<Verdict> {
  const limiter: Limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
  app.use(diana(limiter))
  app.use(
    rateLimit({ limit: '100/m', by: request => request.get('x-api-key'), skip: ({ path }) => path === '/health' }),
  )
  onFetch({ limit: '100/m', by: request => request.headers.get('x-api-key') ?? undefined }).wrap(() => new Response())
  await limiter.consume('per-address', '203.0.113.9', { cost: 2 })
  guard(app.listen(0), limiter)
  return await limiter.check({ method: 'GET', path: '/', ip: '203.0.113.9', headers: {} })
}

export function isRefused(error: unknown): boolean {
  return error instanceof DianaError && error.code === 'LIMITED'
}
