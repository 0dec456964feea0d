import { afterEach, expect, it, vi } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { MapStore } from '../../packages/limiter/src/testing/stores/map-store.ts'

/** A store of the user that fails on demand. */
class FailingStore extends MapStore {
  isDown = false

  override async transact(...[keys, change]: Parameters<MapStore['transact']>): Promise<void> {
    if (this.isDown) throw new Error('terminating connection due to administrator command')
    await super.transact(keys, change)
  }
}

const call = { method: 'GET', path: '/' }
const closing: Limiter[] = []
afterEach(async () => {
  for (const limiter of closing.splice(0)) await limiter.close()
})

/** Limiters that share a store, and know of each other. */
async function fleetOn(store: MapStore): Promise<[Limiter, Limiter]> {
  const create = async (): Promise<Limiter> => {
    const limiter = await createLimiter({
      rules: [{ id: 'all', limit: '10/d', algorithm: 'fixed-window', lease: 'off' }],
      store: Object.assign(store, { timeout: '5s' }),
    })
    limiter.events.on('store', () => {})
    closing.push(limiter)
    return limiter
  }
  const fleet: [Limiter, Limiter] = [await create(), await create()]
  // each is recorded with a share of one half
  const sizes = () => JSON.parse(store.ledgers.get('diana:{shares}')!).members.map((member: number[]) => member.at(-1))
  await vi.waitFor(() => expect(sizes()).toEqual([2, 2]), 10_000)
  for (const one of fleet) {
    await vi.waitFor(() => expect(one.status().store?.fleet).toMatchObject({ size: 2, known: true }), 10_000)
  }
  return fleet
}

async function passing(limiter: Limiter, calls: number): Promise<number> {
  let passed = 0
  for (let i = 0; i < calls; i++) if ((await limiter.check(call)).allowed) passed++
  return passed
}

async function healthy(...limiters: Limiter[]): Promise<void> {
  for (const one of limiters) await vi.waitFor(() => expect(one.status().store?.healthy).toBe(true), 20_000)
}

async function left(limiter: Limiter): Promise<number> {
  return (await limiter.peek(call)).decisions[0]!.remaining
}

it('while a store of the user is away each process counts its share, and reports it when the store is back', async () => {
  const store = new FailingStore()
  const [one, other] = await fleetOn(store)
  expect(await passing(one, 2)).toBe(2)
  store.isDown = true
  const meanwhile = [await passing(one, 12), await passing(other, 12)]
  expect(Math.max(...meanwhile)).toBeLessThanOrEqual(5)
  expect(Math.min(...meanwhile)).toBeGreaterThanOrEqual(3)
  expect(one.status().store).toMatchObject({
    healthy: false,
    code: 'STORE_TRANSACTION',
    trouble: 'terminating connection due to administrator command',
    remedy: expect.stringContaining('store.transact'),
  })
  store.isDown = false
  await healthy(one, other)
  const admitted = 2 + meanwhile[0]! + meanwhile[1]!
  await vi.waitFor(async () => expect(await left(other)).toBe(Math.max(0, 10 - admitted)), 10_000)
  expect(await passing(one, 12)).toBe(Math.max(0, 10 - admitted))
})

it('a store of the user that was emptied learns again what the processes know', async () => {
  const store = new FailingStore()
  const [one, other] = await fleetOn(store)
  expect([await passing(one, 4), await passing(other, 3)]).toEqual([4, 3])
  store.ledgers.clear()
  await vi.waitFor(async () => expect(await left(one)).toBe(3), 20_000)
  await healthy(one, other)
  expect(await passing(other, 10)).toBe(3)
})
