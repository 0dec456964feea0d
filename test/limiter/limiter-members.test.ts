import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { Verdict } from '../../packages/limiter/src/verdict.ts'

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

it('a limiter has the 22 members that the docs list', async () => {
  const limiter = await create()
  const members = Object.getOwnPropertyNames(Limiter.prototype).filter(name => name !== 'constructor')
  expect([...members, ...Object.keys(limiter)].sort()).toEqual([
    ...[
      'addRule',
      'block',
      'blocks',
      'check',
      'close',
      'consume',
      'decide',
      'decideTogether',
      'events',
      'explain',
      'get',
      'grant',
      'jobs',
      'peek',
      'removeRule',
    ],
    ...['reserve', 'reset', 'reward', 'rules', 'set', 'status', 'unblock'],
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

describe('consume, get and reset by plain keys', () => {
  const left = ({ decisions }: Verdict) => decisions[0]!.remaining

  it('consume counts by one rule as a call would, get looks, and reset forgets', async () => {
    const limiter = await create()
    expect(left(await limiter.get('login', 'ann'))).toBe(2)
    expect(left(await limiter.consume('login', 'ann'))).toBe(1)
    expect(left(await limiter.get('login', 'ann'))).toBe(1)
    expect((await limiter.consume('login', 'ann', { cost: 2 })).allowed).toBe(false)
    expect((await limiter.check(call)).allowed).toBe(true)
    expect(await limiter.consume('login', 'ann')).toMatchObject({ allowed: false, rule: 'login', reason: 'limit' })
    expect(left(await limiter.get('login', 'bob'))).toBe(2)
    await limiter.reset('login', 'ann')
    expect(left(await limiter.get('login', 'ann'))).toBe(2)
  })

  it('a verdict of consume can be refunded and settled', async () => {
    const limiter = await create()
    const verdict = await limiter.consume('login', 'ann', { cost: 2 })
    verdict.settle(1)
    expect(left(await limiter.get('login', 'ann'))).toBe(1)
    await verdict.refund()
    expect(left(await limiter.get('login', 'ann'))).toBe(2)
  })

  it.each([
    ['a list', ['ann', '203.0.113.9']],
    ['a record in any order', { ip: '203.0.113.9', account: 'ann' }],
    ['a record with another spelling of an address', { account: 'ann', ip: '::ffff:203.0.113.9' }],
    ['a call', call],
  ])('%s is the key of a rule by several dimensions', async (_name, who) => {
    const limiter = await create(['account', 'ip'])
    await limiter.check(call)
    expect(left(await limiter.consume('login', who))).toBe(0)
    await limiter.reset('login', who)
    expect((await limiter.check(call)).decisions[0]!.remaining).toBe(1)
  })

  it('a rule that counts all calls together has the key []', async () => {
    const limiter = await create([])
    await limiter.check(call)
    expect(left(await limiter.consume('login', []))).toBe(0)
  })

  it('numbers are keys, and the match of the rule is not asked', async () => {
    const limiter = await createLimiter({
      rules: [{ id: 'jobs', by: 'account', match: 'none', limit: '1/h', algorithm: 'fixed-window' }],
      clock: () => Date.UTC(2026, 0, 1),
    })
    closing.push(limiter)
    expect((await limiter.consume('jobs', 7)).allowed).toBe(true)
    expect((await limiter.consume('jobs', '7')).allowed).toBe(false)
  })

  it.each([
    ['account', 'logn', 'ann', 'there is no rule "logn", or it is off; did you mean "login"?'],
    ['account', 'login', '', 'rule "login" counts by account: give a text or a number for each'],
    ['account', 'login', ['ann', 'b'], "as in { 'account': … }"],
    [['account', 'ip'], 'login', { account: 'ann' }, 'rule "login" counts by account and ip'],
    [['account', 'ip'], 'login', { acount: 'ann', ip: '::1' }, 'does not count by acount; did you mean account?'],
    ['account', 'login', { account: {} }, 'give a text or a number for each'],
    ['account', 'login', null, 'give a text or a number for each'],
    ['account', 'login', Number.NaN, 'give a text or a number for each'],
  ])('consume by %j of (%j, %j) is an error that names the remedy', async (by, rule, who, message) => {
    const limiter = await create(by)
    for (const ask of ['consume', 'get', 'reset'] as const) {
      await expect(limiter[ask](rule, who as never)).rejects.toThrow(message)
    }
  })

  it('a cost that is none, and a limiter that was closed, are errors', async () => {
    const limiter = await create()
    await expect(limiter.consume('login', 'ann', { cost: -1 })).rejects.toThrow('cost must be a whole number')
    await limiter.close()
    await expect(limiter.consume('login', 'ann')).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(limiter.get('login', 'ann')).rejects.toMatchObject({ code: 'CLOSED' })
  })
})
