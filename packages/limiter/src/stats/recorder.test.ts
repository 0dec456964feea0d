import { describe, expect, it } from 'vitest'
import { dimensions } from '../dimensions/index.ts'
import { compilePart } from '../dimensions/key.ts'
import { CallRecorder } from './recorder.ts'

const words = { identify: { account: ['header:x-account', 'cookie:uid'] }, dimensions }
const rules = [
  { keyParts: [['account', compilePart('account', words)]] as const, match: { header: { 'x-plan': ['gold'] } } },
]

function create(now: () => number, most = 100): CallRecorder {
  const recorder = new CallRecorder({ most, now })
  recorder.use(rules)
  return recorder
}

describe('the recorder of calls', () => {
  it('the recorder of calls keeps only what the rules read', () => {
    const recorder = create(() => 5)
    const headers = { 'x-account': 'ann', 'x-plan': 'gold', authorization: 'secret', cookie: 'session=secret' }
    recorder.add({ method: 'GET', path: '/a', query: 'token=secret', ip: '203.0.113.1', headers }, 2)
    const [recorded] = recorder.since(0)
    expect(recorded).toMatchObject({
      at: 5,
      cost: 2,
      call: { attributes: { account: 'ann' }, headers: { 'x-plan': 'gold' } },
    })
    expect(JSON.stringify(recorded)).not.toContain('secret')
  })

  it('the recorder of calls keeps the last ones, oldest first', () => {
    let now = 0
    const recorder = create(() => now, 3)
    for (now = 1; now <= 5; now++) recorder.add({ method: 'GET', path: `/${now}` }, 1)
    expect(recorder.since(0).map(({ call }) => call.path)).toEqual(['/3', '/4', '/5'])
    expect(recorder.since(5).map(({ call }) => call.path)).toEqual(['/5'])
  })

  it('the recorder of calls keeps whole callers when calls come fast', () => {
    let now = 0
    const recorder = create(() => now, 100_000)
    const calls = 16_000
    for (let i = 0; i < 2 * calls; i++) {
      now = 1000 + (i * 1000) / calls
      recorder.add({ method: 'GET', path: '/', ip: `10.0.${i % 100}.1` }, 1)
    }
    const recorded = recorder.since(2000)
    expect(recorded[0]?.oneOf).toBe(8)
    const perCaller = new Map<string, number>()
    for (const { call } of recorded) perCaller.set(call.ip!, (perCaller.get(call.ip!) ?? 0) + 1)
    expect(perCaller.size).toBeGreaterThan(3)
    expect(perCaller.size).toBeLessThan(30)
    expect(new Set(perCaller.values())).toEqual(new Set([calls / 100]))
    expect(new Set(recorder.since(0).map(({ oneOf }) => oneOf))).toEqual(new Set([8]))
  })
})
