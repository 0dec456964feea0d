import { createLimiter } from 'diana-limiter'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { randomRuns } from '../../../../../test/helpers/random-runs.ts'
import { RespLimits } from './resp-limits.ts'
import { Failure } from './resp-reply.ts'

const beginMs = 1_800_000_000_000

async function limitsAt(rules: readonly object[] = []) {
  const time = { ms: beginMs }
  const clock = () => time.ms
  const limiter = await createLimiter({ rules: [{ id: 'all', limit: '1000000/s' }, ...rules] as never, clock })
  return { limits: new RespLimits(limiter), limiter, time }
}

/** The formula of redis-cell, in microseconds: one moment says all about a key. */
class Cell {
  #allowedAt = Number.NEGATIVE_INFINITY

  throttle(nowUs: number, { burst, count, period }: Given, quantity: number) {
    const each = (period * 1e6) / count
    const tolerance = each * (burst + 1)
    const tat = Math.max(nowUs, this.#allowedAt)
    const next = tat + each * quantity
    const waits = next - tolerance - nowUs
    if (waits > 0) {
      const left = Math.floor((tolerance - (tat - nowUs)) / each)
      return [
        1,
        burst + 1,
        left,
        each * quantity > tolerance ? -1 : Math.ceil(waits / 1e6),
        Math.ceil((tat - nowUs) / 1e6),
      ]
    }
    this.#allowedAt = next
    return [0, burst + 1, Math.floor((tolerance - (next - nowUs)) / each), -1, Math.ceil((next - nowUs) / 1e6)]
  }
}

interface Given {
  readonly burst: number
  readonly count: number
  readonly period: number
}

describe('CL.THROTTLE', () => {
  it('CL.THROTTLE answers as redis-cell does, at each of these moments', async () => {
    const { limits, time } = await limitsAt()
    const given = { burst: 15, count: 30, period: 60 }
    const at = (ms: number, quantity = 1, key = 'k') => {
      time.ms = beginMs + ms
      return limits.throttle(key, given, quantity)
    }
    const first = Array.from({ length: 17 }, () => at(0))
    expect(first[0]).toEqual([0, 16, 15, -1, 2])
    expect(first[1]).toEqual([0, 16, 14, -1, 4])
    expect(first[15]).toEqual([0, 16, 0, -1, 32])
    expect(first[16]).toEqual([1, 16, 0, 2, 32])
    expect(at(1999)).toEqual([1, 16, 0, 1, 31])
    expect(at(1999, 0)).toEqual([0, 16, 0, -1, 31])
    expect(at(2000)).toEqual([0, 16, 0, -1, 32])
    expect(at(2000, 17, 'fresh')).toEqual([1, 16, 16, -1, 0])
    expect(at(2000, 0, 'fresh')).toEqual([0, 16, 16, -1, 0])
    expect(at(2000, 16, 'fresh')).toEqual([0, 16, 0, -1, 32])
  })

  it('CL.THROTTLE equals the formula of redis-cell for any limits, quantities and moments', async () => {
    // periods that divide into whole microseconds for each count, which both sides have exactly
    const given = fc.record({
      burst: fc.nat(20),
      count: fc.constantFrom(1, 2, 3, 4, 5, 8, 10, 30, 60),
      period: fc.constantFrom(3, 6, 60, 3600),
    })
    const steps = fc.array(fc.tuple(fc.constantFrom(0, 0, 0, 1, 999, 1000, 2001, 60_000), fc.nat(8)), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(given, steps, async (limit, calls) => {
        const { limits, limiter, time } = await limitsAt()
        const cell = new Cell()
        for (const [afterMs, quantity] of calls) {
          time.ms += afterMs
          expect(limits.throttle('k', limit, quantity)).toEqual(cell.throttle(time.ms * 1000, limit, quantity))
        }
        await limiter.close()
      }),
      { numRuns: randomRuns(100) },
    )
  })

  it('a key that has another limit continues with what it has used', async () => {
    const { limits } = await limitsAt()
    for (let call = 0; call < 10; call++) await limits.throttle('k', { burst: 9, count: 10, period: 60 }, 1)
    expect(await limits.throttle('k', { burst: 9, count: 10, period: 60 }, 1)).toEqual([1, 10, 0, 6, 60])
    const [limited, , remaining] = (await limits.throttle('k', { burst: 9, count: 20, period: 60 }, 1)) as number[]
    expect([limited, remaining]).toEqual([1, 0])
  })

  it('blank keys are as many callers as there are spellings', async () => {
    const { limits } = await limitsAt()
    const keys = [
      '',
      ' ',
      '  ',
      '\t',
      '\u00a0',
      '=',
      '= ',
      '==',
      '\x01',
      '\x01 ',
      'x',
      ' x',
      'k'.repeat(200),
      '='.repeat(200),
    ]
    for (const key of keys) {
      expect(await limits.throttle(key, { burst: 0, count: 1, period: 60 }, 1)).toEqual([0, 1, 0, -1, 60])
      expect(await limits.throttle(key, { burst: 0, count: 1, period: 60 }, 1)).toEqual([1, 1, 0, 60, 60])
    }
  })

  it('commands by rules do not reach the limits that others bring along', async () => {
    const { limits } = await limitsAt()
    await limits.throttle('k', { burst: 0, count: 1, period: 60 }, 1)
    expect(() => limits.valuesOf('cl-throttle')).toThrow('there is no rule "cl-throttle"')
    expect(await limits.throttle('k', { burst: 0, count: 1, period: 60 }, 1)).toEqual([1, 1, 0, 60, 60])
  })

  it('limits that cannot be counted, and too many different ones, are errors and no refusals', async () => {
    const { limits } = await limitsAt()
    const slow = await limits.throttle('k', { burst: 999_999_998, count: 1, period: 2_000_000_000 }, 1)
    expect(slow).toBeInstanceOf(Failure)
    const answers = Array.from({ length: 1200 }, (_, i) =>
      limits.throttle(`k${i}`, { burst: 1, count: i + 1, period: 60 }, 1),
    )
    expect(answers.slice(0, 900).every(answer => Array.isArray(answer) && answer[0] === 0)).toBe(true)
    for (const answer of answers) if (answer instanceof Failure) expect(answer.text).toContain('too many different')
    expect(answers.some(answer => answer instanceof Failure)).toBe(true)
  })
})

describe('commands by rules', () => {
  const rules = [
    { id: 'account', by: 'account', limit: '2/m', match: { path: '/never' } },
    { id: 'levels', by: ['account', 'ip'], limit: ['3/s', '5/h'] },
    { id: 'total', limit: '3/h' },
    { id: 'waits', by: 'account', limit: '1/m', whenFull: 'wait' },
    { id: 'off', by: 'account', limit: '1/m', enabled: false },
  ]
  const ask = (rule: string, values: string[], cost = 1) => ({ rule, values, cost })

  it('a rule counts by the values that the command names, whatever its match says', async () => {
    const { limits } = await limitsAt(rules)
    expect(limits.take(ask('account', ['ann']), false)).toEqual([0, 2, 1, -1, 60])
    expect(await limits.take(ask('account', ['ann'], 2), true)).toEqual([1, 2, 1, 60, 60])
    expect(limits.take(ask('account', ['ann']), false)).toEqual([0, 2, 0, -1, 60])
    expect(limits.take(ask('account', ['ann']), false)).toEqual([1, 2, 0, 60, 60])
    expect(limits.take(ask('account', ['bob']), false)).toEqual([0, 2, 1, -1, 60])
    await limits.reset('account', ['ann'])
    expect(limits.take(ask('account', ['ann']), false)).toEqual([0, 2, 1, -1, 60])
  })

  it('of several levels the one that refuses answers, or the one of which least is left', async () => {
    const { limits, time } = await limitsAt(rules)
    const values = ['ann', '203.0.113.1']
    expect(limits.take(ask('levels', values, 3), false)).toEqual([0, 3, 0, -1, 1])
    time.ms += 1000
    expect(limits.take(ask('levels', values, 2), false)).toEqual([0, 5, 0, -1, 3600])
    time.ms += 1000
    expect(limits.take(ask('levels', values), false)).toEqual([1, 5, 0, 3598, 3599])
  })

  it('several rules are charged together or not at all, and the one that refuses is named', async () => {
    const { limits } = await limitsAt(rules)
    expect(await limits.takeAll([ask('account', ['ann']), ask('total', [], 3)])).toEqual([0, 3, 0, -1, 3600, null])
    expect(await limits.takeAll([ask('account', ['ann']), ask('total', [])])).toEqual([1, 3, 0, 3600, 3600, 'total'])
    expect(await limits.take(ask('account', ['ann']), true)).toEqual([0, 2, 1, -1, 60])
  })

  it('a command by a rule that lets calls wait is refused instead', async () => {
    const { limits } = await limitsAt(rules)
    const answers = await Promise.all([1, 2, 3].map(() => limits.take(ask('waits', ['ann']), false)))
    expect(answers.map(answer => (answer as number[])[0])).toEqual([0, 1, 1])
  })

  it('unknown rules, and rules that are off, are errors with a remedy', async () => {
    const { limits } = await limitsAt(rules)
    expect(() => limits.valuesOf('acount')).toThrow('did you mean "account"')
    expect(() => limits.valuesOf('off')).toThrow('or it is off')
    expect(() => limits.valuesOf('__proto__')).toThrow('there is no rule')
    expect(limits.valuesOf('levels')).toBe(2)
  })
})
