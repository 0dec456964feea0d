import { randomRuns } from '@test/random-runs'
import { createLimiter } from 'diana-limiter'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DescriptorCall } from './descriptor-call.ts'
import { importEnvoyRatelimit } from './import-envoy.ts'

interface Node {
  readonly key: string
  readonly value?: string
  readonly rate_limit?: object
  readonly descriptors?: readonly Node[]
}

/** The name of the limit that the service finds for a descriptor. */
function limitOf(nodes: readonly Node[], entries: readonly (readonly [string, string])[]): string | undefined {
  const [[key, value] = ['', ''], ...rest] = entries
  const same = nodes.filter(node => node.key === key)
  const found =
    same.find(node => node.value === value) ??
    same.find(node => node.value?.endsWith('*') && value.startsWith(node.value.slice(0, -1))) ??
    same.find(node => node.value === undefined)
  if (found === undefined) return undefined
  if (rest.length > 0) return limitOf(found.descriptors ?? [], rest)
  return (found.rate_limit as { name?: string } | undefined)?.name
}

describe("the configuration of Envoy's reference rate limit service", () => {
  it('values, patterns and the entry for all others become rules that exclude each other', () => {
    const { rules, warnings } = importEnvoyRatelimit({
      domain: 'shop',
      descriptors: [
        { key: 'plan', value: 'free', rate_limit: { unit: 'minute', requests_per_unit: 10 } },
        { key: 'plan', value: 'team-*', rate_limit: { unit: 'HOUR', requests_per_unit: 50, name: 'teams' } },
        { key: 'plan', value: 'internal', rate_limit: { unlimited: true } },
        {
          ...{ key: 'plan', rate_limit: { unit: 'day', requests_per_unit: 5, replaces: [{ name: 'x' }] } },
          shadow_mode: true,
          descriptors: [{ key: 'remote_address', rate_limit: { unit: 'week', requests_per_unit: 7 } }],
        },
        { key: 'odd', rate_limit: { unit: 'fortnight', requests_per_unit: 1 } },
      ],
    })
    expect(rules).toEqual([
      {
        id: 'shop-plan-free',
        match: { attribute: { domain: 'shop', descriptor: 'plan', plan: 'free' } },
        limit: '10/m',
      },
      {
        id: 'teams',
        match: { attribute: { domain: 'shop', descriptor: 'plan', plan: ['team-*', '!free', '!internal'] } },
        by: ['attribute:plan'],
        limit: '50/h',
      },
      {
        id: 'shop-plan',
        match: { attribute: { domain: 'shop', descriptor: 'plan', plan: ['*', '!free', '!team-*', '!internal'] } },
        ...{ by: ['attribute:plan'], limit: '5/d', whenFull: 'shadow' },
      },
      {
        id: 'shop-plan-remote_address',
        match: {
          attribute: {
            ...{ domain: 'shop', descriptor: 'plan,remote_address' },
            ...{ plan: ['*', '!free', '!team-*', '!internal'], remote_address: '*' },
          },
        },
        by: ['attribute:plan', 'attribute:remote_address'],
        limit: '7/7d',
      },
    ])
    expect(warnings).toEqual(['plan: replaces is left out', 'odd: the unit "fortnight" is not known'])
  })

  it.each([[{}], [{ domain: 'a', descriptors: [{}] }], [[]], [null], ['text']])('%j is refused', value => {
    expect(() => importEnvoyRatelimit(value)).toThrow(/\w/)
  })

  it('random trees find the same limit for random descriptors as the service does', async () => {
    const key = fc.constantFrom('a', 'b', 'domain')
    const value = fc.constantFrom('x', 'xy', 'z')
    const { tree } = fc.letrec<{ tree: Node[] }>(tie => ({
      tree: fc.uniqueArray(
        fc.record(
          {
            ...{ key, value: fc.constantFrom('x', 'xy', 'x*') },
            rate_limit: fc.constant({}),
            descriptors: fc.option(tie('tree'), { depthSize: 'small', nil: [] }),
          },
          { requiredKeys: ['key'] },
        ),
        { maxLength: 4, selector: node => `${node.key} ${node.value}` },
      ) as fc.Arbitrary<Node[]>,
    }))
    const entries = fc.array(fc.tuple(key, value), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(tree, fc.array(entries, { maxLength: 8 }), async (nodes, descriptors) => {
        let count = 0
        const named = (list: readonly Node[]): Node[] =>
          list.map(node => ({
            ...node,
            ...(node.rate_limit && { rate_limit: { unit: 'hour', requests_per_unit: 9, name: `limit-${++count}` } }),
            descriptors: named(node.descriptors ?? []),
          }))
        const all = named(nodes)
        const { rules } = importEnvoyRatelimit({ domain: 'shop', descriptors: all })
        if (rules.length === 0) return
        const limiter = await createLimiter({ rules: rules as never })
        for (const one of descriptors) {
          const call = new DescriptorCall('shop', { entries: one.flat() })
          const { decisions } = await limiter.peek(call)
          const limit = limitOf(all, one)
          expect(decisions.map(({ rule }) => rule)).toEqual(limit === undefined ? [] : [limit])
        }
        await limiter.close()
      }),
      { numRuns: randomRuns(60) },
    )
  })
})
