import type { KeySet } from 'diana-limiter/gateway'
import { describe, expect, it } from 'vitest'
import { IssuerKeys } from './issuer-keys.ts'

const minute = 60_000

function rig() {
  let now = 1_000_000_000_000
  let names: string[] | undefined = ['one']
  let reads = 0
  const troubles: string[] = []
  const keys = new IssuerKeys({
    load: async () => {
      reads++
      if (names === undefined) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      const known = names
      return { has: kid => known.includes(kid), isSigned: () => true } satisfies KeySet
    },
    onTrouble: trouble => troubles.push(trouble),
    now: () => now,
  })
  return {
    keys,
    troubles,
    reads: () => reads,
    pass: (ms: number) => {
      now += ms
    },
    serve: (served: string[] | undefined) => {
      names = served
    },
  }
}

describe('the keys of an issuer', () => {
  it('keys are read once, and again when a token names a new one, at most every 30 seconds', async () => {
    const { keys, reads, pass, serve } = rig()
    await Promise.all([keys.find('one'), keys.find('one'), keys.find(undefined)])
    expect(reads()).toBe(1)
    serve(['one', 'two'])
    expect((await keys.find('two')).has('two')).toBe(false)
    pass(30_000)
    expect((await keys.find('two')).has('two')).toBe(true)
    for (let i = 0; i < 100; i++) await keys.find(`made-up-${i}`)
    expect(reads()).toBe(2)
  })

  it('keys are read again in the background, and a key that the issuer has withdrawn is not used any more', async () => {
    const { keys, reads, pass, serve } = rig()
    await keys.find('one')
    serve(['two'])
    pass(10 * minute)
    expect((await keys.find('one')).has('one')).toBe(true)
    expect((await keys.find('one')).has('one')).toBe(false)
    expect(reads()).toBe(2)
  })

  it('keys stay in use for a day while the issuer is down, which is reported once', async () => {
    const { keys, reads, pass, serve, troubles } = rig()
    await keys.find('one')
    serve(undefined)
    for (let i = 0; i < 100; i++) {
      pass(10 * minute)
      expect((await keys.find('one')).has('one')).toBe(true)
    }
    expect(troubles).toEqual(['the keys of the issuer cannot be read: ECONNREFUSED'])
    pass(24 * 60 * minute)
    await expect(keys.find('one')).rejects.toMatchObject({ status: 503 })
    const before = reads()
    pass(9000)
    await expect(keys.find('one')).rejects.toThrow('ECONNREFUSED')
    expect(reads()).toBe(before)
    pass(1000)
    serve(['one'])
    expect((await keys.find('one')).has('one')).toBe(true)
  })
})
