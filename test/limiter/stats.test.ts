import { describe, expect, it } from 'vitest'
import { adminOf } from '../../packages/limiter/src/admin/limiter-admin.ts'
import type { Call } from '../../packages/limiter/src/call.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { RefusedCaller } from '../../packages/limiter/src/stats/observer.ts'

const none = { refused: 0, waited: 0, shadowRefused: 0, degradedAllowed: 0, degradedRefused: 0 }

function call(ip: string, path = '/'): Call {
  return { method: 'GET', path, ip }
}

function ofRule(limiter: Limiter, id: string) {
  return adminOf(limiter)
    .stats()
    .rules.find(rule => rule.id === id)
}

describe('the statistics of a limiter', () => {
  it('the statistics count an admitted call for each matching rule, and a refused one for the rule that refused', async () => {
    const limiter = await createLimiter({
      rules: [
        { id: 'all', limit: '100/m' },
        { id: 'each', by: 'ip', limit: '2/m' },
        { id: 'other', match: { path: '/other' }, limit: '1/m' },
      ],
      clock: () => 1_000_000,
    })
    for (let i = 0; i < 5; i++) await limiter.check(call('203.0.113.1'))
    await limiter.check(call('203.0.113.2', '/other'))
    await limiter.check(call('203.0.113.3', '/other'))
    expect(adminOf(limiter).stats().total).toEqual({ ...none, allowed: 3, refused: 4 })
    expect(ofRule(limiter, 'all')).toEqual({ id: 'all', waiting: 0, ...none, allowed: 3 })
    expect(ofRule(limiter, 'each')).toEqual({ id: 'each', waiting: 0, ...none, allowed: 3, refused: 3 })
    expect(ofRule(limiter, 'other')).toEqual({ id: 'other', waiting: 0, ...none, allowed: 1, refused: 1 })
    await limiter.close()
  })

  it('the statistics of a limiter do not count peeks', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/m' }] })
    await limiter.peek(call('203.0.113.1'))
    await limiter.check(call('203.0.113.1'), { cost: 0 })
    await limiter.explain(call('203.0.113.1'))
    expect(adminOf(limiter).stats().total).toEqual({ ...none, allowed: 0 })
    await limiter.close()
  })

  it('the statistics of a limiter count what only a shadow rule would have refused among the allowed', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'shy', limit: '2/m', whenFull: 'shadow' }] })
    for (let i = 0; i < 5; i++) await limiter.check(call('203.0.113.1'))
    expect(adminOf(limiter).stats().total).toEqual({ ...none, allowed: 5, shadowRefused: 3 })
    expect(ofRule(limiter, 'shy')).toMatchObject({ allowed: 5, refused: 0, shadowRefused: 3 })
    await limiter.close()
  })

  it('the statistics of a limiter count a call that waits for its moment once', async () => {
    const limiter = await createLimiter({
      rules: [
        { id: 'slow', algorithm: 'leaky-bucket', limit: '100/s', burst: 5, whenFull: 'wait', queue: { size: 2 } },
      ],
    })
    const verdicts = await Promise.all([1, 2, 3, 4, 5].map(() => limiter.check(call('203.0.113.1'))))
    const allowed = verdicts.filter(verdict => verdict.allowed).length
    const waited = verdicts.filter(verdict => verdict.waitMs > 0).length
    expect(waited).toBeGreaterThan(0)
    expect(adminOf(limiter).stats().total).toEqual({ ...none, allowed, waited, refused: 5 - allowed })
    await limiter.close()
  })

  it('the statistics count a call that waits for a slot once, however the wait ends', async () => {
    const limiter = await createLimiter({
      rules: [{ id: 'one', algorithm: 'concurrency', limit: 1, whenFull: 'wait', queue: { size: 2, timeout: '60ms' } }],
    })
    const first = await limiter.check(call('203.0.113.1'))
    const waiting = [limiter.check(call('203.0.113.2')), limiter.check(call('203.0.113.3'))]
    expect(ofRule(limiter, 'one')).toMatchObject({ allowed: 1, refused: 0, waiting: 2 })
    expect(await limiter.check(call('203.0.113.4'))).toMatchObject({ allowed: false, reason: 'queue-full' })
    expect(ofRule(limiter, 'one')).toMatchObject({ allowed: 1, refused: 1, waiting: 2 })
    first.release()
    expect(await waiting[0]).toMatchObject({ allowed: true })
    expect(await waiting[1]).toMatchObject({ allowed: false, reason: 'timeout' })
    expect(adminOf(limiter).stats().total).toEqual({ ...none, allowed: 2, refused: 2, waited: 1 })
    expect(ofRule(limiter, 'one')).toMatchObject({ allowed: 2, refused: 2, waited: 1, waiting: 0 })
    await limiter.close()
  })

  it('the statistics show what was decided while the store could not be asked', async () => {
    const limiter = await createLimiter({
      rules: [{ id: 'shared', limit: '2/m', whenStoreDown: 'local' }],
      store: { redis: async () => Promise.reject(new Error('down')), timeout: '20ms' },
    })
    for (let i = 0; i < 3; i++) await limiter.check(call('203.0.113.1'))
    const { total } = adminOf(limiter).stats()
    expect(total).toMatchObject({ allowed: 2, refused: 1, degradedAllowed: 2, degradedRefused: 1 })
    expect(ofRule(limiter, 'shared')).toMatchObject({ degradedAllowed: 2, degradedRefused: 1 })
    await limiter.close()
  })

  it('an observer gets each call, refusal and verdict until it is removed', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'each', by: 'ip', limit: '1/m' }] })
    const refusals: RefusedCaller[] = []
    const heard: string[] = []
    const stop = adminOf(limiter).observe({
      onCall: ({ ip }, cost) => heard.push(`${ip} ${cost}`),
      onRefusal: refusal => refusals.push(refusal),
      onVerdict: ({ allowed }) => heard.push(String(allowed)),
    })
    await limiter.check(call('203.0.113.1'))
    await limiter.check(call('203.0.113.1'))
    stop()
    await limiter.check(call('203.0.113.1'))
    expect(heard).toEqual(['203.0.113.1 1', 'true', '203.0.113.1 1', 'false'])
    expect(refusals).toEqual([{ rule: 'each', by: ['ip'], key: '203.0.113.1' }])
    await limiter.close()
  })

  it('the statistics measure the duration of one call in 128', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1000/s' }] })
    for (let i = 0; i < 384; i++) await limiter.check(call('203.0.113.1'))
    const { counts, sumSeconds } = adminOf(limiter).stats().durations.memory
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3)
    expect(sumSeconds).toBeGreaterThan(0)
    await limiter.close()
  })

  it('the statistics have the highest usage of a key since they were last read', async () => {
    const limiter = await createLimiter({
      rules: [{ id: 'each', by: 'ip', algorithm: 'token-bucket', limit: '10/s', burst: 20 }],
      clock: () => 1_000_000,
    })
    expect(adminOf(limiter).takeLoads()).toEqual(new Map())
    await limiter.check(call('203.0.113.1'), { cost: 15 })
    await limiter.check(call('203.0.113.2'))
    expect(adminOf(limiter).takeLoads()).toEqual(new Map([['each', 0.75]]))
    expect(adminOf(limiter).takeLoads()).toEqual(new Map())
    await limiter.close()
  })
})

describe('a trial', () => {
  it('a trial counts beside the real rule and refuses no call until it ends', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '10/m' }] })
    const { id } = adminOf(limiter).startTrial('all', 'id: all\nlimit: 2/m\n')
    expect(id).toBe('all~trial')
    for (let i = 0; i < 5; i++) expect((await limiter.check(call('203.0.113.1'))).allowed).toBe(true)
    expect(ofRule(limiter, 'all~trial')).toMatchObject({ allowed: 5, shadowRefused: 3 })
    expect(adminOf(limiter).endTrial(id)).toBe(true)
    expect(adminOf(limiter).endTrial(id)).toBe(false)
    expect(ofRule(limiter, 'all~trial')).toBeUndefined()
    for (let i = 0; i < 6; i++) await limiter.check(call('203.0.113.1'))
    expect(ofRule(limiter, 'all')).toMatchObject({ allowed: 10, refused: 1 })
    await limiter.close()
  })

  it('a trial of an invalid rule is refused, and so is the twenty-first trial', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '10/m' }] })
    expect(() => adminOf(limiter).startTrial('all', 'id: all\nlimit: many')).toThrow('limit')
    for (let i = 0; i < 20; i++) adminOf(limiter).startTrial(`r${i}`, `- id: r${i}\n  limit: 5/s`)
    expect(() => adminOf(limiter).startTrial('more', '{ id: more, limit: 1/s }')).toThrow('20 rules')
    expect(adminOf(limiter).trials).toHaveLength(20)
    await limiter.close()
  })
})

describe('a preview', () => {
  it('a preview decides the recorded calls by both sets of rules, at their own moments', async () => {
    let now = 1_700_000_000_000
    const limiter = await createLimiter({
      identify: { account: ['header:x-account', 'cookie:uid'] },
      rules: [
        { id: 'each', by: 'account', limit: '2/s' },
        { id: 'all', limit: '100/s' },
      ],
      clock: () => now,
    })
    adminOf(limiter).record()
    for (let second = 0; second < 10; second++) {
      for (let i = 0; i < 3; i++) await limiter.check({ ...call('203.0.113.1'), headers: { 'x-account': 'ann' } })
      await limiter.check({ ...call('203.0.113.1'), headers: { cookie: 'uid=bob; other=secret' } })
      now += 1000
    }
    const proposed = {
      ...(await adminOf(limiter).documents.consider('local', 'rules: [{ id: each, by: account, limit: 1/s }]'))!,
    }
    const { rules, total, calls, sampled } = adminOf(limiter).preview({ ...proposed, identify: {} })
    expect([calls, sampled]).toEqual([40, false])
    expect(total).toEqual({ before: { allowed: 30, refused: 10 }, after: { allowed: 20, refused: 20 } })
    expect(rules.find(({ id }) => id === 'each')).toEqual({
      id: 'each',
      before: { allowed: 30, refused: 10 },
      after: { allowed: 20, refused: 20 },
    })
    expect(rules.find(({ id }) => id === 'all')?.after).toEqual({ allowed: 0, refused: 0 })
    expect(adminOf(limiter).stats().total).toMatchObject({ allowed: 30, refused: 10 })
    await limiter.close()
  })

  it('a preview without recorded calls is empty', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1/m' }] })
    await limiter.check(call('203.0.113.1'))
    expect(
      adminOf(limiter).preview(
        (await adminOf(limiter).documents.consider('local', 'rules: [{ id: all, limit: 1/s }]'))!,
      ).calls,
    ).toBe(0)
    await limiter.close()
  })
})
