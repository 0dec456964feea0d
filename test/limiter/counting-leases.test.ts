import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { slidingWindow } from '../../packages/limiter/src/algorithms/sliding-window.ts'
import { type Counting, serveCounting } from '../../packages/limiter/src/counting.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { CountingStore } from '../../packages/limiter/src/stores/counting/client.ts'

let folder: string
let counting: Counting
let limiters: Limiter[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-counting-'))
  counting = await serveCounting({ socket: join(folder, 'socket') })
  limiters = []
})

afterEach(async () => {
  for (const limiter of limiters) await limiter.close()
  await counting.close()
  await rm(folder, { recursive: true, force: true })
})

async function start(processes: number, rules: object[]): Promise<Limiter[]> {
  for (let i = 0; i < processes; i++)
    limiters.push(await createLimiter({ rules: rules as never, counting: join(folder, 'socket') }))
  return limiters
}

const call = { method: 'GET', path: '/', ip: '203.0.113.9' }
const algorithms = ['sliding-window', 'sliding-log', 'fixed-window', 'token-bucket']

describe('permits that processes of one machine hold in advance', () => {
  it.each(algorithms)(
    'no process is refused while another holds permits of the caller, and none passes beyond the limit: %s',
    async algorithm => {
      let decided = 0
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 2, max: 4 }),
          fc.constantFrom(40, 100, 333, 500),
          fc.array(
            fc.record({
              at: fc.nat(3),
              calls: fc.integer({ min: 1, max: 150 }),
              together: fc.integer({ min: 1, max: 20 }),
            }),
            { minLength: 5, maxLength: 30 },
          ),
          async (processes, limit, bursts) => {
            const rules = [
              { id: `each-${decided++}`, by: 'ip', algorithm, limit: `${limit}/d` },
              { id: `all-${decided}`, algorithm, limit: `${limit * 2}/d` },
            ]
            limiters = []
            const fleet = await start(processes, rules)
            let admitted = 0
            for (const { at, calls, together } of bursts) {
              const limiter = fleet[at % processes]!
              for (let made = 0; made < calls; made += together) {
                const verdicts = await Promise.all(
                  Array.from({ length: Math.min(together, calls - made) }, () => limiter.check(call)),
                )
                const passed = verdicts.filter(({ allowed }) => allowed).length
                expect(passed).toBe(Math.min(verdicts.length, limit - admitted))
                admitted += passed
              }
            }
            for (const limiter of fleet) await limiter.close()
          },
        ),
        { numRuns: randomRuns(6) },
      )
      expect(decided).toBeGreaterThan(0)
    },
  )

  it('a reset forgets also what other processes have admitted by permits, and nothing that comes after it', async () => {
    const [one, other] = (await start(2, [{ id: 'each', by: 'ip', limit: '200/d' }])) as [Limiter, Limiter]
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 150; i++) expect((await one.check(call)).allowed).toBe(true)
      await other.reset('each', call.ip)
      const made = await Promise.all(Array.from({ length: 250 }, (_, i) => (i % 2 ? one : other).check(call)))
      expect(made.filter(({ allowed }) => allowed)).toHaveLength(200)
      await one.reset('each', call.ip)
    }
  })

  it('permits that were used and refunded pass again, in any process', async () => {
    const [one, other] = (await start(2, [{ id: 'each', by: 'ip', limit: '200/d' }])) as [Limiter, Limiter]
    const verdicts = []
    for (let i = 0; i < 190; i++) verdicts.push(await one.check(call))
    for (const verdict of verdicts) verdict.refund()
    const again = []
    for (let i = 0; i < 250; i++) again.push(await (i % 3 ? one : other).check(call))
    expect(again.filter(({ allowed }) => allowed)).toHaveLength(200)
  })

  it('a process that does not give permits back delays the calls that need them by a moment, and frees none of them', async () => {
    const [limiter] = (await start(1, [{ id: 'each', by: 'ip', limit: '100/d' }])) as [Limiter]
    const stopped = new CountingStore({ socket: join(folder, 'socket') })
    await stopped.waitUntilConnected(1000)
    const meters = [slidingWindow.meter({ count: 100, periodMs: 86_400_000 }, {})]
    const terms = [[{ count: 100, periodMs: 86_400_000 }], {}, null]
    const counter = stopped.createCounter({
      id: 'each',
      algorithm: 'sliding-window',
      by: ['ip'],
      meters,
      terms,
      enforced: true,
    })
    expect((await limiter.check(call)).allowed).toBe(true)
    const key = (await stopped.keys(counter, 2)).at(-1)!
    const { amount } = await stopped.lease({ counter, key, sequence: 1, used: [], kept: 0, needed: 30, wanted: 0 })
    expect(amount).toBe(30)
    let admitted = 1
    for (let i = 0; i < 80; i++) if ((await limiter.check(call)).allowed) admitted++
    expect(admitted).toBe(70)
    const begun = performance.now()
    const late = await Promise.all(Array.from({ length: 50 }, () => limiter.check(call)))
    expect(late.some(({ allowed }) => allowed)).toBe(false)
    expect(performance.now() - begun).toBeLessThan(1000)
    stopped.close()
  })
})
