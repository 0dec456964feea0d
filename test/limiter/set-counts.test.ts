import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter, RuleOptions } from '../../packages/limiter/src/index.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'
import { useRedis } from '../helpers/servers/use-redis.ts'

const redis = useRedis()
const START_MS = Date.UTC(2026, 10, 17)
let prefixes = 0

async function limiterOf(
  where: 'memory' | 'Redis' | 'ledgers',
  rule: object,
  clock = () => START_MS,
): Promise<Limiter> {
  const limiter = await createLimiter({
    clock,
    ...(where === 'Redis' && {
      store: { redis: redis.url, timeout: '5s', prefix: `s${prefixes++}` },
    }),
    ...(where === 'ledgers' && { store: new MapStore() }),
    rules: [{ id: 'r', by: 'account', ...rule } as RuleOptions],
  })
  redis.closeLater(limiter)
  return limiter
}

async function passing(limiter: Limiter, calls: number): Promise<number> {
  let passed = 0
  for (let call = 0; call < calls; call++) if ((await limiter.consume('r', 'ann')).allowed) passed++
  return passed
}

const algorithms: Readonly<Record<string, object>> = {
  'sliding-window': { limit: '10/h' },
  'sliding-log': { limit: '10/h', algorithm: 'sliding-log' },
  'fixed-window': { limit: '10/h', algorithm: 'fixed-window' },
  'token-bucket': { limit: '10/h', algorithm: 'token-bucket' },
  'token-bucket with a burst': { limit: '5/h', burst: 10, algorithm: 'token-bucket' },
  'leaky-bucket': { limit: '10/h', burst: 9, algorithm: 'leaky-bucket' },
  calendar: { limit: '10/month' },
  plans: { limit: { by: 'attribute:plan', values: { pro: '90/h' }, default: '10/h' } },
}

describe.each(['memory', 'Redis', 'ledgers'] as const)('in %s', where => {
  it.each(Object.entries(algorithms))('set and reward change what a caller has used: %s', async (_, rule) => {
    const limiter = await limiterOf(where, rule)
    expect(await limiter.set('r', 'ann', 7)).toBe(3)
    expect(await passing(limiter, 5)).toBe(3)
    expect(await limiter.reward('r', 'ann', 2)).toBe(2)
    expect(await passing(limiter, 5)).toBe(2)
    expect(await limiter.reward('r', 'ann')).toBe(1)
    expect(await limiter.reward('r', 'ann', 1000)).toBe(10)
    expect(await limiter.reward('r', 'ann', 1000)).toBe(10)
    expect(await limiter.set('r', 'ann', 1e9)).toBe(0)
    expect(await passing(limiter, 2)).toBe(0)
    expect(await limiter.set('r', 'ann', 0)).toBe(10)
    expect(await passing(limiter, 12)).toBe(10)
    // others are not concerned
    expect((await limiter.get('r', 'bob')).decisions[0]!.remaining).toBe(10)
  })

  it('a count that was set leaves the window as calls do', async () => {
    let nowMs = START_MS
    const limiter = await limiterOf(where, { limit: '10/m', algorithm: 'token-bucket' }, () => nowMs)
    await limiter.set('r', 'ann', 10)
    if (where === 'Redis') return
    nowMs += 30_000
    expect(await passing(limiter, 9)).toBe(5)
  })

  it('a block without end refuses until it is ended', async () => {
    let nowMs = START_MS
    const limiter = await limiterOf(where, { limit: '10/h', block: 'manual' }, () => nowMs)
    for (const time of ['forever', Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER] as const) {
      await limiter.block('r', 'ann', time)
      nowMs += 10 * 365 * 86_400_000
      expect(await limiter.get('r', 'ann')).toMatchObject({ allowed: false, reason: 'blocked' })
      const call = { method: 'GET', path: '/', attributes: { account: 'ann' } }
      expect((await limiter.explain(call)).caller[0]?.means).toContain('blocked by rule "r" without end')
      expect(await limiter.blocks('r')).toMatchObject([{ rule: 'r' }])
      await limiter.unblock('r', 'ann')
      expect((await limiter.get('r', 'ann')).allowed).toBe(true)
      nowMs = START_MS
    }
  })

  it('a rule with block: forever blocks who is over the limit, and a growing block may end without end', async () => {
    for (const block of ['forever', { first: '1s', factor: 100, max: 'forever' }, { first: 'forever' }]) {
      const limiter = await limiterOf(where, { limit: '1/s', block })
      await limiter.consume('r', 'ann')
      expect(await limiter.consume('r', 'ann')).toMatchObject({ allowed: false })
      const [blocked] = await limiter.blocks('r')
      const isLong = typeof block === 'string' || block.factor === undefined
      expect(blocked!.leftMs > 20 * 365 * 86_400_000).toBe(isLong)
    }
  })
})

it('a count that cannot be set is an error that says why', async () => {
  const several = await limiterOf('memory', { limit: ['10/s', '100/h'] })
  await expect(several.set('r', 'ann', 1)).rejects.toThrow('rule "r" has several limits')
  const places = await limiterOf('memory', { limit: 5, algorithm: 'concurrency' })
  await expect(places.reward('r', 'ann')).rejects.toThrow('rule "r" counts calls under way')
  const plain = await limiterOf('memory', { limit: '5/s' })
  for (const used of [-1, 1.5, Number.NaN, '3' as never]) {
    await expect(plain.set('r', 'ann', used)).rejects.toThrow('rule "r" takes a whole number of 0 or more')
    await expect(plain.reward('r', 'ann', used)).rejects.toThrow('rule "r" takes a whole number of 1 or more')
  }
  await expect(plain.reward('r', 'ann', 0)).rejects.toThrow('rule "r" takes a whole number of 1 or more')
  await expect(plain.set('q', 'ann', 1)).rejects.toThrow('"q"')
  await expect(plain.block('r', 'ann', 'for ever')).rejects.toThrow('rule "r"')
})
