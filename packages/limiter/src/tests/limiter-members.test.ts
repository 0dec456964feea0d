import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import { Limiter } from '../limiter.ts'

const closing: Limiter[] = []
afterEach(async () => {
  for (const limiter of closing.splice(0)) await limiter.close()
})

async function create(by: string | string[] = 'account'): Promise<Limiter> {
  const limiter = await createLimiter({
    rules: [{ id: 'login', by, limit: '2/h', algorithm: 'fixed-window', block: 'manual' }],
    clock: () => Date.UTC(2026, 0, 1),
  })
  closing.push(limiter)
  return limiter
}

const call = { method: 'GET', path: '/', attributes: { account: 'ann' }, ip: '203.0.113.9' }

it('a limiter has the 15 members that the docs list', async () => {
  const limiter = await create()
  const members = Object.getOwnPropertyNames(Limiter.prototype).filter(name => name !== 'constructor')
  expect([...members, ...Object.keys(limiter)].sort()).toEqual([
    ...[
      'addRule',
      'block',
      'blocks',
      'check',
      'close',
      'decide',
      'events',
      'explain',
      'peek',
      'removeRule',
      'reserve',
      'reset',
    ],
    ...['rules', 'status', 'unblock'],
  ])
})

describe('a caller of one rule, by a call or by a plain key', () => {
  it.each([
    ['a call', call],
    ['a value of the dimension', 'ann'],
    ['a key as blocks lists it', { key: 'ann' }],
  ])('peek, reset, block and unblock take %s', async (_name, who) => {
    const limiter = await create()
    const left = async () => (await limiter.peek(who, { rule: 'login' })).decisions.map(({ remaining }) => remaining)
    await limiter.check(call)
    expect(await left()).toEqual([1])
    await limiter.reset('login', who)
    expect(await left()).toEqual([2])
    await limiter.block('login', who, '1m')
    expect((await limiter.check(call)).reason).toBe('blocked')
    expect((await limiter.peek(who, { rule: 'login' })).reason).toBe('blocked')
    await limiter.unblock('login', who)
    expect((await limiter.check(call)).allowed).toBe(true)
  })

  it('an address is found in any spelling', async () => {
    const limiter = await create('ip')
    await limiter.check(call)
    const { decisions } = await limiter.peek('::ffff:203.0.113.9', { rule: 'login' })
    expect(decisions[0]!.remaining).toBe(1)
  })

  it('peek at a plain key without a rule is an error that names the remedy', async () => {
    const limiter = await create()
    await expect(limiter.peek('ann')).rejects.toThrow("peek('ann', { rule: 'login' })")
    await expect(limiter.peek('ann', { rule: 'none' })).rejects.toMatchObject({ code: 'BAD_CALL' })
  })

  it.each([[[]], [['account', 'ip']]])('a plain key of a rule by %j is an error that asks for a call', async by => {
    const limiter = await create(by as string[])
    for (const ask of [() => limiter.peek('ann', { rule: 'login' }), () => limiter.reset('login', 'ann')]) {
      await expect(ask()).rejects.toThrow('give a call of the caller')
    }
  })

  it('a listed key of several dimensions is peeked at and reset', async () => {
    const limiter = await create(['account', 'ip'])
    await limiter.check(call)
    await limiter.block('login', call, '1m')
    const [blocked] = await limiter.blocks()
    expect((await limiter.peek(blocked!, { rule: 'login' })).reason).toBe('blocked')
    await limiter.unblock('login', blocked!)
    expect((await limiter.peek(blocked!, { rule: 'login' })).decisions[0]!.remaining).toBe(2)
  })
})
