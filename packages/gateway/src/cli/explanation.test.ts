import { expect, it } from 'vitest'
import { type Explained, explainForMachines, explainForPeople } from './explanation.ts'

function explained(more: { readonly leased?: number } = {}): Explained {
  const decision = { rule: 'hot', limit: 100, periodMs: 1000, allowed: true, shadow: false, remaining: 90 }
  const rule = {
    ...{ rule: 'hot', algorithm: 'token-bucket', key: {}, limits: [{ count: 100, periodMs: 1000 }] },
    ...{ decisions: [{ ...decision, resetAfterMs: 0, retryAfterMs: 0 }], ...more },
  }
  return {
    call: { method: 'GET', path: '/', ip: '203.0.113.1' },
    rules: Object.assign([rule], { caller: [] }),
    verdict: { allowed: true, retryAfterMs: 0 } as never,
    misses: [],
  }
}

it('an explanation says how many permits of a key are held in advance, if there are any', () => {
  const line = '  leased: this process holds 12 permits of this key in advance'
  expect(explainForPeople(explained({ leased: 12 }))).toContain(line)
  expect(explainForPeople(explained()).join('\n')).not.toContain('leased')
  expect(JSON.parse(explainForMachines(explained({ leased: 12 }))).rules[0].leased).toBe(12)
})
