import { fieldOf, type RedisCharge, type RedisCounter } from './redis-counter.ts'
import type { Refund, Renewal } from './redis-question.ts'

interface Holding {
  counter: RedisCounter
  readonly key: string
  /** Places that Redis has granted. */
  granted: number
  /** Places asked for, with the answer under way. */
  asked: number
}

/** Knows what this process holds in Redis, to say so again before the leases end. */
export class RedisLeases {
  readonly #holdings = new Map<string, Holding>()

  ask(charges: readonly RedisCharge[]): void {
    for (const charge of charges) {
      // most charges hold nothing, and this is done for each of them
      if (!charge.counter.held || charge.cost === 0) continue
      const { counter, key, cost } = charge
      const id = idOf(counter, key)
      const holding = this.#holdings.get(id)
      if (!holding) this.#holdings.set(id, { counter, key, granted: 0, asked: cost })
      else {
        holding.counter = counter
        holding.asked += cost
      }
    }
  }

  /** What was asked for has been answered, or never will be. */
  settle(charges: readonly RedisCharge[], allowed: boolean): void {
    for (const charge of charges) {
      if (!charge.counter.held || charge.cost === 0) continue
      const { counter, key, cost, fits } = charge
      this.#change(idOf(counter, key), -cost, allowed && fits ? cost : 0)
    }
  }

  giveBack(refunds: readonly Refund[]): void {
    for (const { counter, key, cost } of refunds) if (counter.held) this.#change(idOf(counter, key), 0, -cost)
  }

  /** What is held under a key is forgotten there, and is not to be said again. */
  drop(counter: RedisCounter, key: string): void {
    this.#holdings.delete(idOf(counter, key))
  }

  /** All that is held, as it is known now. */
  renewals(): Renewal[] {
    return [...this.#holdings.values()].map(({ counter, key, granted, asked }) => {
      return { counter, key, least: granted, most: granted + asked }
    })
  }

  #change(id: string, asked: number, granted: number): void {
    const holding = this.#holdings.get(id)
    if (!holding) return
    holding.asked += asked
    holding.granted = Math.max(0, holding.granted + granted)
    if (holding.asked === 0 && holding.granted === 0) this.#holdings.delete(id)
  }
}

function idOf(counter: RedisCounter, key: string): string {
  return counter.homeOf(key).young + fieldOf(key)
}
