import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, test, vi } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'

const call = { method: 'POST', path: '/login', attributes: { account: 'u1' } }
const rulesOf = async (
  limiter: Limiter,
  ...options: Parameters<Limiter['peek']> extends [unknown, (infer O)?] ? [O?] : []
) => (await limiter.peek(call, ...options)).decisions.map(({ rule }) => rule)

describe('a rule used by name', () => {
  it('a rule used by name decides the calls that name it, and no others', async () => {
    const limiter = await createLimiter({
      rules: [
        { id: 'all', limit: '100/s' },
        { id: 'login', match: 'none', limit: '1/m' },
        { id: 'orders', match: { path: '/orders' }, limit: '5/s' },
      ],
    })
    expect(await rulesOf(limiter)).toEqual(['all'])
    expect(await rulesOf(limiter, { rule: 'login' })).toEqual(['all', 'login'])
    expect(await rulesOf(limiter, { rule: ['orders', 'all', 'login', 'login'] })).toEqual(['all', 'orders', 'login'])
    expect(await rulesOf(limiter, { rule: 'login', only: true })).toEqual(['login'])
    expect(await rulesOf(limiter, { rule: ['login', 'all'], only: true })).toEqual(['login', 'all'])
    expect(await rulesOf(limiter, { rule: ['nobody', '__proto__'] })).toEqual(['all'])
    const checked = [await limiter.check(call, { rule: 'login' }), await limiter.check(call, { rule: 'login' })]
    expect(checked.map(({ allowed }) => allowed)).toEqual([true, false])
    expect(checked[1]!.rule).toBe('login')
    expect((await limiter.check(call)).allowed).toBe(true)
    expect((await limiter.explain(call, { rule: 'login' })).map(({ rule }) => rule)).toEqual(['all', 'login'])
    checked[0]!.settle(0)
    expect((await limiter.check(call, { rule: 'login' })).allowed).toBe(true)
    await limiter.close()
  })

  it('a rule used by name lets calls wait for its slots', async () => {
    const limiter = await createLimiter({
      rules: [{ id: 'busy', match: 'none', limit: 1, algorithm: 'concurrency', whenFull: 'wait' }],
    })
    const first = await limiter.check(call, { rule: 'busy' })
    const second = limiter.check(call, { rule: 'busy' })
    expect((await limiter.check(call)).decisions).toEqual([])
    expect(limiter.status().rules[0]!.waiting).toBe(1)
    first.end()
    expect((await second).allowed).toBe(true)
    await limiter.close()
  })
})

describe('a cost from a function', () => {
  it.each([
    [() => 4, 6],
    [() => 0, 10],
    [() => Number.NaN, 9],
    [() => -5, 9],
    [() => 2.5, 9],
    [() => '3' as never, 9],
    [
      () => {
        throw new Error('hostile')
      },
      9,
    ],
  ])('a cost function that returns %s leaves %i of 10', async (cost, remaining) => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '10/m' }] })
    expect((await limiter.check(call, { cost })).decisions[0]!.remaining).toBe(remaining)
    await limiter.close()
  })
})

describe('a rule added in code', () => {
  it('a rule added in code is in force at once, and existing counts stay', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '10/m' }] })
    await limiter.check(call)
    limiter.addRule({ id: 'login', match: 'none', by: 'account', limit: '2/m' })
    expect(limiter.rules.some(rule => rule.id === 'login')).toBe(true)
    expect(limiter.status().rules).toMatchObject([{ id: 'all' }, { id: 'login', origin: 'code' }])
    const { decisions } = await limiter.check(call, { rule: 'login' })
    expect(decisions.map(({ remaining }) => remaining)).toEqual([8, 1])
    limiter.addRule({ id: 'login', match: 'none', by: 'account', limit: '2/m' })
    expect((await limiter.peek(call, { rule: 'login' })).decisions[1]!.remaining).toBe(1)
    await limiter.close()
    expect(() => limiter.addRule({ id: 'late', limit: '1/s' })).toThrow('closed')
  })

  it('an invalid rule is reported with its mistakes, and changes nothing', async () => {
    const limiter = await createLimiter({ rules: [{ id: 'all', limit: '10/m' }] })
    const bad = [
      () => limiter.addRule({ id: 'a', limit: '10 per minute' }),
      () => limiter.addRule({ id: 'a', by: 'tenant', limit: '10/m' }),
      () => limiter.addRule(undefined as never),
    ]
    const messages = bad.map(add => {
      try {
        return add()
      } catch (error) {
        return String(error)
      }
    })
    expect(messages).toMatchInlineSnapshot(`
      [
        "DianaError: rule "a": limit "10 per minute" is not a limit: did you mean 10/m?",
        "DianaError: rule "a": by "tenant" is not a dimension: write account, device, ip, resource, host, method, header:<name>, query:<name>, cookie:<name>, jwt:<name>, client-certificate:<name> or attribute:<name>, or define it under identify",
        "DianaError: the rule is missing: give a map of options",
      ]
    `)
    limiter.addRule({ id: 'a', limit: '10/m' })
    expect(() => limiter.addRule({ id: 'a', limit: '11/m' })).toThrow('was added with other options')
    expect(limiter.status().rules.map(({ id }) => id)).toEqual(['all', 'a'])
    await limiter.close()
  })

  it('a rule in code is replaced by one with its id in the rule file, also if that comes later or disables it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'diana-named-'))
    const config = join(folder, 'diana.yaml')
    await writeFile(config, 'rules:\n  - { id: login, match: none, limit: 7/m }\n')
    const limiter = await createLimiter({ config })
    try {
      limiter.addRule({ id: 'login', match: 'none', limit: '5/m' })
      limiter.addRule({ id: 'sms', match: 'none', limit: '5/m' })
      const limits = async () => (await limiter.peek(call, { rule: ['login', 'sms'] })).decisions.map(one => one.limit)
      expect(await limits()).toEqual([7, 5])
      await writeFile(config, 'rules:\n  - { id: sms, limit: 3/m, enabled: false }\n')
      await vi.waitFor(async () => expect(await limits()).toEqual([5]), 10_000)
      expect(limiter.rules.some(rule => rule.id === 'sms')).toBe(true)
    } finally {
      await limiter.close()
      await rm(folder, { recursive: true })
    }
  })
})

test('a rule that was added can be removed, and continues when it is added again', async () => {
  const limiter = await createLimiter({ rules: [{ id: 'kept', match: 'none', limit: '1/h' }] })
  const call = { method: 'GET', path: '/' }
  const login = { id: 'login', limit: '1/h' }
  limiter.addRule(login)
  const statuses = [(await limiter.check(call)).allowed, (await limiter.check(call)).allowed]
  expect([statuses, limiter.removeRule('login'), limiter.removeRule('login')]).toEqual([[true, false], true, false])
  expect([limiter.rules.some(rule => rule.id === 'login'), (await limiter.check(call)).allowed]).toEqual([false, true])
  limiter.addRule({ ...login, limit: '2/h' })
  expect((await limiter.check(call)).decisions[0]).toMatchObject({ rule: 'login', remaining: 0 })
  // what createLimiter was given is not the program's to remove
  expect([limiter.removeRule('kept'), limiter.rules.some(rule => rule.id === 'kept')]).toEqual([false, true])
  await limiter.close()
  expect(() => limiter.removeRule('login')).toThrow('closed')
})
