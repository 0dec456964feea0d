import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { classifyError } from '../store-error.ts'
import { StoreHealth } from './store-health.ts'

beforeEach(() => vi.useFakeTimers({ now: Date.UTC(2026, 0, 1) }))
afterEach(() => void vi.useRealTimers())

function outage(health: StoreHealth, ms: number): void {
  health.begin(classifyError(new Error('connect ECONNREFUSED')))
  vi.setSystemTime(Date.now() + ms)
  health.end()
  vi.setSystemTime(Date.now() + 1000)
}

describe('the outages that are remembered', () => {
  it('short outages in a row do not push a long one out of the list', () => {
    const health = new StoreHealth()
    outage(health, 600_000)
    for (let i = 0; i < 100; i++) outage(health, 50)
    const lengths = health.outages.map(({ since, until }) => until! - since)
    expect(lengths).toHaveLength(20)
    expect(lengths[0]).toBe(600_000)
    // and the newest is still there
    expect(Date.now() - health.outages.at(-1)!.since).toBe(1050)
  })
})
