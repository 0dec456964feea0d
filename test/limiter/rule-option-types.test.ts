import { describe, expect, expectTypeOf, it } from 'vitest'
import type { AlgorithmName, AlgorithmOptions } from '../../packages/limiter/src/algorithms/index.ts'
import { algorithms } from '../../packages/limiter/src/algorithms/index.ts'
import type { RateLimitOptions } from '../../packages/limiter/src/decorators/annotation.ts'
import { shapeOf } from '../../packages/limiter/src/rules/schema/option-shape.ts'
import type { RuleOptions } from '../../packages/limiter/src/rules/schema/options.ts'

/**
 * The options that the interface has for each algorithm; the compiler rejects a name that is missing or unknown. The example of
 * docs/extending.md adds a name of its own.
 */
const typed: { [Name in Exclude<AlgorithmName, 'local-day'>]: Record<keyof AlgorithmOptions[Name], true> } = {
  'sliding-window': { segments: true },
  'fixed-window': { align: true, zone: true, anchor: true },
  'sliding-log': {},
  'token-bucket': { burst: true, start: true, refill: true },
  'leaky-bucket': { burst: true, delay: true },
  'warm-up': { warmUp: true, coldFactor: true },
  concurrency: {},
  adaptive: { min: true },
}

describe('the types of rule options', () => {
  it('the types of rule options name every algorithm, and its options as the rule file has them', () => {
    const read = algorithms.map(({ name, options }) => [name, Object.keys(shapeOf(options)).sort()])
    const written = Object.entries(typed).map(([name, options]) => [name, Object.keys(options).sort()])
    expect(Object.fromEntries(written)).toEqual(Object.fromEntries(read))
  })

  it('the types of rule options accept the options of the algorithm that a rule names, or of the default', () => {
    const rules: readonly RuleOptions[] = [
      { id: 'plain', limit: '1/s' },
      { id: 'default', limit: '1/s', segments: 20 },
      { id: 'bucket', limit: '1/s', algorithm: 'token-bucket', burst: 5, start: 'empty' },
      { id: 'warm', limit: '1/s', algorithm: 'warm-up', warmUp: '10s' },
    ]
    expect(rules).toHaveLength(4)
  })

  it('the types of rule options reject misspelled names, options of another algorithm, and values of another type', () => {
    const rules: readonly RuleOptions[] = [
      // @ts-expect-error a word that no rule has
      { id: 'a', limit: '1/s', algoritm: 'token-bucket' },
      // @ts-expect-error an algorithm that does not exist
      { id: 'b', limit: '1/s', algorithm: 'token-buket' },
      // @ts-expect-error an option of another algorithm
      { id: 'c', limit: '1/s', algorithm: 'token-bucket', segments: 3 },
      // @ts-expect-error an option of another algorithm than the default
      { id: 'd', limit: '1/s', burst: 3 },
      // @ts-expect-error a value of another type
      { id: 'e', limit: '1/s', algorithm: 'token-bucket', burst: '5' },
      // @ts-expect-error a value that the option does not have
      { id: 'f', limit: '1/s', whenFull: 'reject' },
    ]
    expect(rules).toHaveLength(6)
    // @ts-expect-error the decorator has the same options
    const limit: RateLimitOptions = { limit: '1/s', algorithm: 'leaky-bucket', segments: 3 }
    expect(limit).toBeDefined()
  })

  it('the types of rule options have no option of an unknown name', () => {
    expectTypeOf<RuleOptions>().not.toHaveProperty('anything')
    expectTypeOf<Extract<RuleOptions, { algorithm: 'token-bucket' }>['burst']>().toEqualTypeOf<number | undefined>()
  })
})
