import { randomRuns } from '@test/random-runs'
import { startRedis } from '@test/servers/redis-server'
import fc from 'fast-check'
import { Hono, type MiddlewareHandler } from 'hono'
import { expect, test } from 'vitest'
import { adminOf } from '../admin/limiter-admin.ts'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { RuleOptions } from '../rules/schema/options.ts'
import type { Verdict } from '../verdict.ts'
import { diana, rateLimit, verdictOf } from './hono.ts'

const algorithms = ['fixed-window', 'sliding-window', 'sliding-log', 'token-bucket', 'leaky-bucket'] as const

const rule = (id: string): fc.Arbitrary<RuleOptions> => {
  return fc
    .record({
      algorithm: fc.constantFrom(...algorithms),
      limit: fc
        .tuple(fc.integer({ min: 1, max: 6 }), fc.constantFrom('s', 'm'))
        .map(([count, per]) => `${count}/${per}`),
      by: fc.constantFrom([], ['header:x-key']),
      whenFull: fc.constantFrom('refuse' as const, 'refuse' as const, 'shadow' as const),
    })
    .map(words => ({ id, ...words }))
}

const scenes = fc.record({
  rules: fc.tuple(rule('all'), rule('more'), rule('route-a'), rule('route-b')),
  order: fc.constantFrom('application first' as const, 'route first' as const),
  calls: fc.array(fc.record({ afterMs: fc.constantFrom(0, 0, 1, 400, 1000, 61_000), key: fc.constantFrom('a', 'b') }), {
    minLength: 1,
    maxLength: 40,
  }),
})

type Scene = typeof scenes extends fc.Arbitrary<infer T> ? T : never

/** Two filters of one limiter on every request, beside one judgement by the same rules in another limiter. */
async function play({ rules, order, calls }: Scene, options: Partial<LimiterOptions> = {}): Promise<void> {
  let now = 1_700_000_000_000
  const [all, more, ...ofRoute] = rules
  const document = { rules: [all, more, ...ofRoute.map(one => ({ ...one, match: 'none' as const }))] }
  const [filtered, reference] = await Promise.all([
    createLimiter({ ...document, clock: () => now, ...options }),
    createLimiter({ ...document, clock: () => now }),
  ])
  const named = ofRoute.map(({ id }) => id)
  let verdict: Verdict | undefined
  const filters: MiddlewareHandler[] = [diana(filtered), rateLimit(filtered, { rule: named })]
  if (order === 'route first') filters.reverse()
  const app = new Hono()
  app.get('/', async (context, next) => {
    await next()
    verdict = verdictOf(context)
  })
  app.get('/', ...(filters as [MiddlewareHandler, MiddlewareHandler]), context => context.text('served'))
  try {
    for (const { afterMs, key } of calls) {
      now += afterMs
      const headers = { 'x-key': key }
      const { status } = await app.request('/', { headers })
      const expected = await reference.check({ method: 'GET', path: '/', headers }, { rule: named })
      expect(status).toBe(expected.allowed ? 200 : 503)
      if (!expected.allowed) continue
      expect(sorted(verdict!)).toEqual(sorted(expected))
    }
    const call = { method: 'GET', path: '/', headers: { 'x-key': 'a' } }
    const [one, other] = await Promise.all([filtered, reference].map(limiter => limiter.peek(call, { rule: named })))
    expect(sorted(one!)).toEqual(sorted(other!))
    const { allowed, refused } = adminOf(reference).stats().total
    expect(adminOf(filtered).stats().total).toMatchObject({ allowed, refused })
  } finally {
    await Promise.all([filtered.close(), reference.close()])
  }
}

function sorted({ decisions }: Verdict): unknown[] {
  return decisions.map(({ rule, allowed, remaining }) => [rule, allowed, remaining]).sort()
}

test('two filters decide a request as one filter does, in either order, for any rules', async () => {
  await fc.assert(
    fc.asyncProperty(scenes, scene => play(scene)),
    { numRuns: randomRuns(30) },
  )
})

test('two filters decide a request as one filter does, counted in Redis', async () => {
  const redis = await startRedis()
  try {
    const run = async (scene: Scene): Promise<void> => {
      await redis.client.flushall()
      await play(scene, { store: { redis: redis.client, timeout: '10s' } })
    }
    await fc.assert(fc.asyncProperty(scenes, run), { numRuns: randomRuns(4) })
  } finally {
    await redis.close()
  }
})
