import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Counting, serveCounting } from '../../packages/limiter/src/counting.ts'
import { createLimiter, type LimiterOptions } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { startRedis } from '../helpers/servers/redis-server.ts'

let folder: string
let socket: string
let closing: (() => Promise<void>)[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-counting-'))
  socket = join(folder, 'socket')
  closing = [() => rm(folder, { recursive: true, force: true })]
})

afterEach(async () => {
  for (const close of closing.reverse()) await close()
})

async function count(): Promise<Counting> {
  const counting = await serveCounting({ socket })
  closing.push(() => counting.close().catch(() => {}))
  return counting
}

async function join2(options: LimiterOptions): Promise<[Limiter, Limiter]> {
  const limiters = [
    await createLimiter({ ...options, counting: socket }),
    await createLimiter({ ...options, counting: socket }),
  ]
  for (const limiter of limiters) closing.push(() => limiter.close())
  return limiters as [Limiter, Limiter]
}

const call = { method: 'GET', path: '/', ip: '203.0.113.9' }

describe('a process that decides no calls', () => {
  it('a process that decides no calls takes no share of the limits of the fleet, and sees how many others do', async () => {
    await count()
    const redis = await startRedis()
    closing.push(() => redis.close())
    const options = {
      store: { redis: `redis://${redis.authority}`, fleet: 2 },
      rules: [{ id: 'all', limit: '240/h' }],
    }
    const observer = await createLimiter({ ...options, counting: socket, isObserver: true })
    closing.push(() => observer.close())
    const workers = await join2(options)
    const sizes = () => [observer, ...workers].map(limiter => limiter.status().store!.fleet.size)
    await expect.poll(sizes, { timeout: 5000 }).toEqual([2, 2, 2])
    await redis.stop('SIGKILL')
    let allowed = 0
    for (let i = 0; i < 240; i++) for (const worker of workers) if ((await worker.check(call)).allowed) allowed++
    expect(allowed).toBe(240)
  })
})

describe('processes that count together', () => {
  it('several limiters on one counting process admit exactly the limit', async () => {
    await count()
    const [one, other] = await join2({
      rules: [
        { id: 'all', limit: '100/m' },
        { id: 'each', by: 'ip', limit: '1000/m' },
      ],
    })
    const asked = Array.from({ length: 400 }, (_, i) => (i % 3 === 0 ? one : other).check(call))
    const allowed = (await Promise.all(asked)).filter(verdict => verdict.allowed)
    expect(allowed).toHaveLength(100)
    const { decisions } = await one.peek(call)
    // a refused call costs nothing: the other rule was charged for those that passed
    expect(decisions.map(({ remaining }) => remaining)).toEqual([0, 900])
  })

  it('processes that count together keep the limit of a rule with block, and block together', async () => {
    await count()
    const [one, other] = await join2({ rules: [{ id: 'each', by: 'ip', limit: '3/m', block: 'manual' }] })
    const allowed: boolean[] = []
    for (let i = 0; i < 6; i++) allowed.push((await (i % 2 ? one : other).check(call)).allowed)
    expect(allowed).toEqual([true, true, true, false, false, false])
    const stranger = { ...call, ip: '203.0.113.10' }
    await one.block('each', stranger, '1m')
    expect(await other.check(stranger)).toMatchObject({ allowed: false, reason: 'blocked' })
    await other.unblock('each', stranger)
    expect((await one.check(stranger)).allowed).toBe(true)
  })

  it('processes that count together answer like a single process', async () => {
    await count()
    const rules = [{ id: 'levels', by: 'ip', limit: ['3/s', '5/m'], algorithm: 'fixed-window' as const }]
    const [one] = await join2({ rules })
    const alone = await createLimiter({ rules })
    closing.push(() => alone.close())
    for (let i = 0; i < 6; i++) {
      const [shared, own] = [await one.check(call), await alone.check(call)]
      const view = (verdict: typeof own) => [
        verdict.allowed,
        verdict.rule,
        verdict.decisions.map(({ limit, remaining }) => [limit, remaining]),
      ]
      expect(view(shared)).toEqual(view(own))
    }
  })

  it('the slots of a process that exits are released', async () => {
    await count()
    const [one, other] = await join2({ rules: [{ id: 'places', limit: 3, algorithm: 'concurrency' }] })
    const held = [await one.check(call), await one.check(call), await other.check(call)]
    expect(held.map(({ allowed }) => allowed)).toEqual([true, true, true])
    expect((await other.check(call)).allowed).toBe(false)
    await one.close()
    await expect.poll(async () => (await other.peek(call)).decisions[0]!.remaining).toBe(2)
    held[2]!.release()
    await expect.poll(async () => (await other.peek(call)).decisions[0]!.remaining).toBe(3)
  })

  it('limiters count by themselves while the counting process is down, and together when it is back', async () => {
    const first = await count()
    const [one, other] = await join2({
      rules: [{ id: 'places', limit: 3, algorithm: 'concurrency' }],
    })
    const held = await one.check(call)
    await first.close()
    await expect
      .poll(() =>
        one.check(call).then(verdict => {
          verdict.release()
          return one.status().counting?.healthy
        }),
      )
      .toBe(false)
    const meanwhile = await one.check(call)
    expect(meanwhile.allowed).toBe(true)
    await count()
    await expect
      .poll(async () => {
        await other.peek(call)
        return other.status().counting?.healthy
      })
      .toBe(true)
    // what was held before is held still, and what was taken meanwhile is known to all
    await expect.poll(async () => (await other.peek(call)).decisions[0]!.remaining).toBe(1)
    held.release()
    meanwhile.release()
    await expect.poll(async () => (await other.peek(call)).decisions[0]!.remaining).toBe(3)
  })

  it('calls of several processes wait in one queue', async () => {
    await count()
    const [one, other] = await join2({
      // far enough apart for processes that a busy machine delays
      rules: [{ id: 'paced', limit: '10/s', algorithm: 'leaky-bucket', burst: 20, whenFull: 'wait' }],
    })
    const waits = await Promise.all([one, other, one, other].map(limiter => limiter.check(call)))
    const sorted = waits.map(({ waitMs }) => waitMs).sort((a, b) => a - b)
    for (let i = 1; i < sorted.length; i++) expect(sorted[i]! - sorted[i - 1]!).toBeGreaterThan(5)
  })

  it('a reset of a key reaches the counting process', async () => {
    await count()
    const [one, other] = await join2({ rules: [{ id: 'all', by: 'ip', limit: '1/m' }] })
    expect((await one.check(call)).allowed).toBe(true)
    expect((await other.check(call)).allowed).toBe(false)
    await other.reset('all', call)
    await expect.poll(async () => (await one.peek(call)).allowed).toBe(true)
  })
})
