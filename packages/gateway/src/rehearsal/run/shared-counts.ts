import {
  type Answered,
  type CatchUp,
  catchUpState,
  decideCharges,
  type FleetCharge,
  type FleetCounter,
  type FleetRefund,
  type FleetRule,
  type Membership,
  type MembershipRegistry,
  refundCharge,
  type SharedStore,
  type SignOfLife,
  stateSize,
} from 'diana-limiter/store'

/** The store in which the processes of a case count together, as long as it is not down. */
export class SharedCounts {
  isDown = false
  readonly #now: () => number
  readonly #counters = new Map<string, FleetCounter>()
  readonly #states = new Map<FleetCounter, Map<string, Float64Array>>()
  readonly #signs = new Map<string, { readonly at: number; readonly isBack: boolean }>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Returns the store as a process sees it. It leases no permits, so that every call is decided by all that was counted before. */
  asStore(): SharedStore {
    const ask = async <T>(run: () => T): Promise<T> => {
      if (this.isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      return run()
    }
    const decide = (what: 'take' | 'look', charges: readonly FleetCharge[]): Answered => {
      const now = this.#now()
      const states = charges.map(({ counter, key }) => this.#stateOf(counter, key))
      return { allowed: decideCharges(what, charges, states, now), now }
    }
    const giveBack = (refunds: readonly FleetRefund[]): void => {
      if (this.isDown) return
      for (const refund of refunds) refundCharge(refund, this.#stateOf(refund.counter, refund.key), this.#now())
    }
    return {
      createCounter: rule => this.#counterOf(rule),
      take: charges => ask(() => decide('take', charges)),
      look: charges => ask(() => decide('look', charges)),
      giveBack,
      refund: (charges, now) =>
        giveBack(charges.map(({ counter, key, cost, wait }) => ({ counter, key, cost, wait, moment: now + wait }))),
      catchUp: (missed: CatchUp<FleetCounter>) =>
        ask(() => catchUpState(missed, this.#stateOf(missed.counter, missed.key), this.#now())),
      keys: (counter, most) => ask(() => [...(this.#states.get(counter)?.keys() ?? [])].slice(0, most)),
      reset: (counter, key) => ask(() => void this.#states.get(counter)?.delete(key)),
      close: () => {},
    }
  }

  /** Returns the other processes, as one of them sees them. */
  asRegistry(id: string): MembershipRegistry {
    const ask = async <T>(run: () => T): Promise<T> => {
      if (this.isDown) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      return run()
    }
    return {
      era: () => ask(() => '1'),
      register: sign => ask(() => this.#register(id, sign)),
      leave: () => ask(() => void this.#signs.delete(id)),
    }
  }

  #register(id: string, { isBack, withinMs, memberMs }: SignOfLife): Membership {
    const nowMs = this.#now() / 1000
    this.#signs.set(id, { at: nowMs, isBack })
    for (const [other, { at }] of this.#signs) if (nowMs - at > memberMs) this.#signs.delete(other)
    const heard = [...this.#signs.values()].filter(({ at }) => nowMs - at <= withinMs)
    return {
      era: '1',
      size: this.#signs.size,
      rank: [...this.#signs.keys()].sort().indexOf(id),
      heard: heard.length,
      back: heard.filter(sign => sign.isBack).length,
    }
  }

  #counterOf({ id, meters }: FleetRule): FleetCounter {
    const known = this.#counters.get(id)
    if (known !== undefined) return known
    const counter: FleetCounter = { meters, needsRelease: meters.some(meter => meter.held !== undefined) }
    this.#counters.set(id, counter)
    return counter
  }

  #stateOf(counter: FleetCounter, key: string): Float64Array {
    const states = this.#states.get(counter) ?? new Map<string, Float64Array>()
    this.#states.set(counter, states)
    const state = states.get(key) ?? new Float64Array(stateSize(counter))
    states.set(key, state)
    return state
  }
}
