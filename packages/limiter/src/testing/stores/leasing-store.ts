import type { CatchUp } from '../../stores/catch-up.ts'
import { leaseTermsOf } from '../../stores/leases/lease-terms.ts'
import { Reservations } from '../../stores/leases/reservations.ts'
import type { LevelState } from '../../stores/memory/delay-beside.ts'
import { layOut } from '../../stores/memory/migrate-states.ts'
import type {
  Answered,
  FleetCharge,
  FleetCounter,
  FleetRefund,
  FleetRule,
  LeaseAnswer,
  LeaseRequest,
  SharedStore,
} from '../../stores/store.ts'
import { catchUpState, decideCharges, refundCharge, resetState, stateSize } from './decide-charges.ts'

interface Key {
  readonly state: Float64Array
  readonly reservations: Reservations<string>
}

interface Counter extends FleetCounter {
  readonly keys: Map<string, Key>
}

/** A shared store in this process that leases permits, on a clock that the test sets. Several processes use it by views of their own. */
export class LeasingStore {
  now = 1e15
  /** Another number after it has lost its memory. */
  era = 1
  /** Questions that were asked, by what they are. */
  readonly asked = { calls: 0, leases: 0 }
  readonly #counters = new Map<string, Counter>()

  createCounter({ id, meters, lease }: FleetRule): FleetCounter {
    const known = this.#counters.get(id)
    if (known) return known
    const needsRelease = meters.some(meter => meter.held !== undefined)
    const counter = { meters, needsRelease, lease: leaseTermsOf({ meters, lease }), keys: new Map<string, Key>() }
    this.#counters.set(id, counter)
    return counter
  }

  take(charges: readonly FleetCharge[]): Answered {
    this.asked.calls++
    return this.#decide('take', charges)
  }

  look(charges: readonly FleetCharge[]): Answered {
    return this.#decide('look', charges)
  }

  lease(holder: string, request: LeaseRequest<FleetCounter>): LeaseAnswer {
    this.asked.leases++
    const key = this.#keyOf(request.counter, request.key)
    return key.reservations.request(holder, request, levelsOf(request.counter, key.state), this.now)
  }

  giveBack(refunds: readonly FleetRefund[]): void {
    for (const refund of refunds) refundCharge(refund, this.#keyOf(refund.counter, refund.key).state, this.now)
  }

  catchUp(missed: CatchUp<FleetCounter>): void {
    catchUpState(missed, this.#keyOf(missed.counter, missed.key).state, this.now)
  }

  reset(counter: FleetCounter, key: string): void {
    resetState(this.#keyOf(counter, key).state, this.now)
  }

  async keys(counter: FleetCounter, most: number): Promise<string[]> {
    return [...(counter as Counter).keys.keys()].slice(0, most)
  }

  /** Loses its memory, as a server does that is started without its data. */
  forget(): void {
    this.era++
    for (const { keys } of this.#counters.values()) keys.clear()
  }

  /** Returns the store as one process sees it, which answers at once. */
  view(holder: string): SharedStore {
    return {
      createCounter: rule => this.createCounter(rule),
      take: async charges => this.take(charges),
      look: async charges => this.look(charges),
      lease: async request => this.lease(holder, request),
      giveBack: refunds => this.giveBack(refunds),
      catchUp: async missed => this.catchUp(missed),
      keys: (counter, most) => this.keys(counter, most),
      reset: async (counter, key) => this.reset(counter, key),
      close: () => {},
    }
  }

  #decide(what: 'take' | 'look', charges: readonly FleetCharge[]): Answered {
    const keys = charges.map(({ counter, key }) => this.#keyOf(counter, key))
    const held = keys.map(({ reservations }) => reservations.held)
    const states = keys.map(({ state }) => state)
    return { allowed: decideCharges(what, charges, states, this.now, held), now: this.now }
  }

  #keyOf(counter: FleetCounter, name: string): Key {
    const { keys } = counter as Counter
    const known = keys.get(name)
    const key = known ?? { state: new Float64Array(stateSize(counter)), reservations: new Reservations<string>() }
    if (!known) keys.set(name, key)
    const levels = levelsOf(counter, key.state)
    key.reservations.bookEnded(levels, this.now)
    // stores forget a key that is idle, and so the moment of its last call
    const isIdle =
      key.reservations.isEmpty && levels.every(({ meter, state, at }) => meter.idleAt(state, at) <= this.now)
    if (isIdle) key.state.fill(0, 0, -1)
    return key
  }
}

function levelsOf(counter: FleetCounter, state: Float64Array): LevelState[] {
  const { meters, offsets } = layOut(counter.meters)
  return meters.map((meter, level) => ({ meter, state, at: offsets[level]! }))
}
