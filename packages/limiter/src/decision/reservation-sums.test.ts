import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLimiter } from '../create/create-limiter.ts'
import type { Reservation } from './settlement.ts'

const call = { method: 'POST', path: '/v1/chat', attributes: { account: 'u1' } }
const start = 1_794_712_380_000
const [COUNT, PERIOD_MS, HOLD_MS] = [20, 60_000, 45_000]

/** What a call was charged in the end, and when. */
interface Entry {
  readonly at: number
  amount: number
}

/** An account of every call by itself, from which is added up what is left; it knows nothing of how limits are counted. */
class Ledger {
  readonly #entries: Entry[] = []
  readonly #open: { readonly entry: Entry; readonly until: number }[] = []

  reserve(at: number, amount: number): Entry {
    const entry = { at, amount }
    this.#entries.push(entry)
    this.#open.push({ entry, until: at + HOLD_MS })
    return entry
  }

  settle(entry: Entry, at: number, actual: number): void {
    const open = this.#open.findIndex(one => one.entry === entry)
    const reserved = open < 0 ? 0 : entry.amount
    if (open >= 0) this.#open.splice(open, 1)
    if (actual < reserved) entry.amount = actual
    else this.#entries.push({ at, amount: actual - reserved })
  }

  expire(now: number): void {
    for (const one of [...this.#open]) {
      if (one.until > now) continue
      one.entry.amount = 0
      this.#open.splice(this.#open.indexOf(one), 1)
    }
  }

  leftInWindow(now: number): number {
    const window = (at: number) => Math.floor(at / PERIOD_MS)
    return this.#left(({ at }) => window(at) === window(now))
  }

  leftInPeriod(now: number): number {
    return this.#left(({ at }) => at > now - PERIOD_MS)
  }

  /** In parts of a token, of which one comes each millisecond; a token has as many as the limit takes for one. */
  leftInBucket(now: number): number {
    const token = PERIOD_MS / COUNT
    let [level, last] = [0, 0]
    for (const { at, amount } of this.#entries) {
      level = Math.max(0, level - (at - last)) + amount * token
      last = at
    }
    level = Math.max(0, level - (now - last))
    return Math.max(0, Math.floor((COUNT * token - level) / token))
  }

  #left(counts: (entry: Entry) => boolean): number {
    const used = this.#entries.filter(counts).reduce((sum, { amount }) => sum + amount, 0)
    return Math.max(0, COUNT - used)
  }
}

const cases = [
  { algorithm: 'fixed-window', left: 'leftInWindow', isExact: true },
  { algorithm: 'sliding-log', left: 'leftInPeriod', isExact: true },
  { algorithm: 'sliding-window', left: 'leftInPeriod', isExact: false },
  { algorithm: 'token-bucket', left: 'leftInBucket', isExact: false },
] as const

const move = fc.record({
  gapMs: fc.oneof(fc.constant(0), fc.nat(2000), fc.nat(90_000)),
  what: fc.constantFrom('reserve', 'reserve', 'settle', 'settle', 'again'),
  which: fc.nat(),
  amount: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 60 })),
})

describe('what is reserved, settled, released and left to end adds up', () => {
  it.each(cases)('all amounts add up by $algorithm', async ({ algorithm, left, isExact }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { maxLength: 60 }), async moves => {
        let now = start
        const ledger = new Ledger()
        const limiter = await createLimiter({
          clock: () => now,
          rules: [{ id: 'tokens', by: 'account', limit: `${COUNT}/m`, algorithm, cost: { hold: '45s' } }],
        })
        const reservations: { readonly reservation: Reservation; readonly entry: Entry }[] = []
        const settled: Reservation[] = []
        for (const { gapMs, what, which, amount } of moves) {
          now += gapMs
          ledger.expire(now)
          const room = ledger[left](now)
          const cost = Math.min(amount, COUNT)
          if (what === 'reserve') {
            const reservation = await limiter.reserve(call, { cost })
            if (isExact) expect(reservation.allowed).toBe(cost <= room)
            else if (reservation.allowed) expect(cost).toBeLessThanOrEqual(room)
            if (reservation.allowed) reservations.push({ reservation, entry: ledger.reserve(now, cost) })
          } else if (what === 'settle' && reservations.length > 0) {
            const [{ reservation, entry }] = reservations.splice(which % reservations.length, 1) as [
              (typeof reservations)[0],
            ]
            await reservation.settle(amount - 1)
            ledger.settle(entry, now, amount - 1)
            settled.push(reservation)
          } else if (what === 'again') await settled[which % Math.max(1, settled.length)]?.settle(amount)
          const { remaining } = (await limiter.peek(call)).decisions[0]!
          if (isExact) expect(remaining).toBe(ledger[left](now))
          else expect(remaining).toBeLessThanOrEqual(ledger[left](now))
        }
        await limiter.close()
      }),
      { numRuns: randomRuns(16) },
    )
  })
})
