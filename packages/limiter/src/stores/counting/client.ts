import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import type { Meter } from '../../algorithms/algorithm.ts'
import { attempt } from '../../common/background.ts'
import type { CatchUp } from '../catch-up.ts'
import { leaseTermsOf, RECALLED_LEASES } from '../leases/lease-terms.ts'
import type { Membership, MembershipRegistry, SignOfLife } from '../membership/registry.ts'
import type { ShareClaim, ShareGrant } from '../membership/shares.ts'
import type {
  Answered,
  FleetCharge,
  FleetCounter,
  FleetRefund,
  FleetRule,
  FleetSettlement,
  LeaseAnswer,
  LeaseRequest,
  SharedStore,
  StoreWatcher,
} from '../store.ts'
import { Holdings } from './holdings.ts'
import {
  type AnsweredCharge,
  type AnsweredRequest,
  type ChargeRequest,
  type CountingRequest,
  type CountingRule,
  encode,
  type LeaseLine,
  type Reply,
  type Request,
  readMessages,
  usesOf,
} from './messages.ts'
import type { Settled } from './reserved-charges.ts'

interface Counter extends FleetCounter {
  readonly number: number
  readonly rule: CountingRule
  /** The connection on which the rule was sent. */
  definedOn: Socket | undefined
}

interface Pending {
  readonly request: CountingRequest
  readonly charges: readonly FleetCharge[]
  readonly resolve: (answer: Answered) => void
  readonly reject: (reason: Error) => void
}

interface Awaiting<Answer> {
  readonly resolve: (answer: Answer) => void
  readonly reject: (reason: Error) => void
}

/** Where a counting process is. */
export interface CountingTarget {
  readonly socket: string
  /** Decides no calls, so that no share of a limit is reserved for it. */
  readonly isObserver?: boolean | undefined
}

const RECONNECT_MS = 50
const alone: Membership = { era: '', size: 1, rank: 0, heard: 1, back: 1 }

/**
 * Counts in another process of this machine, shared by several processes. All calls of one turn of the event loop are sent in
 * one message and are decided there in the order they came. If the process is down, everything fails at once.
 */
export class CountingStore implements SharedStore, MembershipRegistry {
  readonly #target: CountingTarget
  readonly #numbers = new Map<string, number>()
  readonly #holdings = new Holdings<Counter>()
  readonly #asked = new Map<number, readonly Pending[]>()
  readonly #membership = new Map<number, Awaiting<Membership>>()
  readonly #inquiries = new Map<number, Awaiting<unknown>>()
  readonly #leasing = new Map<number, readonly Awaiting<LeaseAnswer>[]>()
  /** Calls of a batch, by their places, whose answers come after those of the others. */
  readonly #late = new Map<number, Map<number, Pending>>()
  /** The counters whose permits may be leased, by their numbers. */
  readonly #leased = new Map<number, Counter>()
  #watcher: StoreWatcher | undefined
  #socket: Socket | undefined
  #pending: Pending[] = []
  #refunds: FleetRefund[] = []
  #leases: { readonly line: LeaseLine; readonly counter: Counter; readonly awaiting: Awaiting<LeaseAnswer> }[] = []
  #batch = 0
  #flushing = false
  #closed = false
  #reconnecting: NodeJS.Timeout | undefined

  constructor(target: CountingTarget) {
    this.#target = target
    this.#connect()
  }

  /** Resolves when the counting process is connected, or at the timeout. */
  async waitUntilConnected(timeoutMs: number): Promise<void> {
    for (const until = performance.now() + timeoutMs; performance.now() < until && !this.#socket; ) await pause(10)
  }

  createCounter({ id, meters, algorithm, by = [], terms = [], limitMeters, lease }: FleetRule): FleetCounter {
    const limit = limitMeters && (limitMeters.includes(meters[0]!) ? 'stated' : 'other')
    // a rule that blocks has two counts of one id, and one whose limit depends on the caller has one for each limit
    const name = limit === undefined ? `${id} ${algorithm}` : `${id} ${algorithm} ${JSON.stringify(terms)}`
    const number = this.#numbers.get(name) ?? this.#numbers.size
    this.#numbers.set(name, number)
    const counter: Counter = {
      meters,
      needsRelease: meters.some(meter => meter.held !== undefined),
      number,
      rule: { id, algorithm, by, terms, limit },
      lease: limit === undefined ? leaseTermsOf({ meters, lease }, RECALLED_LEASES) : undefined,
      definedOn: undefined,
    }
    if (counter.lease) this.#leased.set(number, counter)
    return counter
  }

  take(charges: readonly FleetCharge[]): Promise<Answered> {
    return this.#ask(false, charges)
  }

  look(charges: readonly FleetCharge[]): Promise<Answered> {
    return this.#ask(true, charges)
  }

  watch(watcher: StoreWatcher): void {
    this.#watcher = watcher
  }

  /** Requests of one turn are sent with its calls. */
  lease({ counter, key, sequence, used, kept, needed, wanted }: LeaseRequest<FleetCounter>): Promise<LeaseAnswer> {
    if (this.#socket === undefined) return Promise.reject(new Error('the counting process is away'))
    const line: LeaseLine = [numberOf(counter), key, sequence, usesOf(used), kept, needed, wanted]
    return new Promise((resolve, reject) => {
      this.#leases.push({ line, counter: counter as Counter, awaiting: { resolve, reject } })
      this.#flushSoon()
    })
  }

  giveBack(refunds: readonly FleetRefund[]): void {
    for (const { counter, key, cost } of refunds)
      if (counter.needsRelease) this.#holdings.add(counter as Counter, key, -cost)
    if (this.#socket === undefined) return
    this.#refunds.push(...refunds)
    this.#flushSoon()
  }

  /** Settles reservations at what was really used. */
  async settle(settlements: readonly FleetSettlement[]): Promise<void> {
    await this.#inquire<true>(batch => [
      ...settlements.flatMap(({ counter }) => this.#define(counter as Counter)),
      ['settle', batch, settlements.map(settledOf)],
    ])
  }

  async catchUp({ counter, key, levels, unfit }: CatchUp<FleetCounter>): Promise<void> {
    unfit.push(
      ...(await this.#inquire<readonly number[]>(batch => [
        ...this.#define(counter as Counter),
        ['catchUp', batch, numberOf(counter), key, levels],
      ])),
    )
  }

  async keys(counter: FleetCounter, most: number): Promise<string[]> {
    return [
      ...(await this.#inquire<readonly string[]>(batch => [
        ...this.#define(counter as Counter),
        ['keys', batch, numberOf(counter), most],
      ])),
    ]
  }

  async reset(counter: FleetCounter, key: string): Promise<void> {
    if (this.#socket === undefined) return
    await this.#inquire<true>(batch => [...this.#define(counter as Counter), ['reset', batch, numberOf(counter), key]])
  }

  /** Sends a request that is not a call, and resolves to the answer. */
  #inquire<Answer>(requests: (batch: number) => readonly Request[]): Promise<Answer> {
    const socket = this.#socket
    if (socket === undefined) return Promise.reject(new Error('the counting process is away'))
    const batch = ++this.#batch
    return new Promise((resolve, reject) => {
      this.#inquiries.set(batch, { resolve: resolve as (answer: unknown) => void, reject })
      this.#send(socket, requests(batch))
    })
  }

  /** The counting process knows its clients. */
  register({ isBack, withinMs }: SignOfLife): Promise<Membership> {
    const socket = this.#socket
    if (socket === undefined) return Promise.reject(new Error('the counting process is away'))
    if (this.#target.isObserver) return Promise.resolve(alone)
    const batch = ++this.#batch
    return new Promise((resolve, reject) => {
      this.#membership.set(batch, { resolve, reject })
      this.#send(socket, [['register', batch, isBack, withinMs]])
    })
  }

  share(claim: ShareClaim): Promise<ShareGrant | undefined> {
    if (this.#target.isObserver) return Promise.resolve({ seat: 0, size: 1, isGranted: true })
    return this.#inquire(batch => [['share', batch, claim]])
  }

  async leave(): Promise<void> {
    if (this.#socket) this.#send(this.#socket, [['leave']])
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#reconnecting)
    this.#socket?.destroy()
  }

  #connect(): void {
    const socket = connect(this.#target.socket)
    socket.unref()
    socket.once('connect', () => {
      this.#socket = socket
      this.#announce(socket)
    })
    socket.on('error', () => {})
    socket.once('close', () => this.#leave())
    readMessages<Reply>(socket, reply => this.#receive(reply))
  }

  #leave(): void {
    this.#socket = undefined
    this.#refunds = []
    const lost: readonly { reject(reason: Error): void }[] = [
      ...[...this.#asked.values(), ...this.#leasing.values()].flat(),
      ...[...this.#late.values()].flatMap(late => [...late.values()]),
      ...[...this.#membership.values(), ...this.#inquiries.values()],
    ]
    this.#leasing.clear()
    this.#late.clear()
    this.#inquiries.clear()
    this.#asked.clear()
    this.#membership.clear()
    for (const { reject } of lost) reject(new Error('the counting process went away'))
    if (!this.#closed) this.#reconnecting = setTimeout(() => this.#connect(), RECONNECT_MS).unref()
  }

  /** A counting process that was restarted does not know which slots are held here. */
  #announce(socket: Socket): void {
    const held = [...this.#holdings]
    if (held.length === 0) return
    const define = held.flatMap(([counter]) => this.#define(counter))
    this.#send(socket, [...define, ['hold', held.map(([{ number }, key, cost]) => [number, key, cost] as const)]])
  }

  #ask(isLook: boolean, charges: readonly FleetCharge[]): Promise<Answered> {
    if (this.#socket === undefined) return Promise.reject(new Error('the counting process is away'))
    const asked = charges.map(({ counter, key, cost, enforced, mayWait, reservation, holdUs }): ChargeRequest => {
      const charge = [numberOf(counter), key, cost, enforced, mayWait] as const
      return holdUs > 0 ? [...charge, reservation, holdUs] : charge
    })
    return new Promise((resolve, reject) => {
      this.#pending.push({ request: [isLook, asked], charges, resolve, reject })
      this.#flushSoon()
    })
  }

  #flushSoon(): void {
    if (this.#flushing) return
    this.#flushing = true
    setImmediate(() => {
      const pending = [...this.#pending, ...this.#leases.map(({ awaiting }) => awaiting)]
      const rejectAll = (): void => {
        for (const { reject } of pending) reject(new Error('the calls could not be sent'))
      }
      if (!attempt('calls to the counting process', () => this.#flush())) rejectAll()
    })
  }

  #flush(): void {
    const pending = this.#pending
    const refunds = this.#refunds
    const leases = this.#leases
    this.#flushing = false
    this.#pending = []
    this.#refunds = []
    this.#leases = []
    if (this.#socket === undefined) {
      for (const { reject } of pending) reject(new Error('the counting process is away'))
      for (const { awaiting } of leases) awaiting.reject(new Error('the counting process is away'))
      return
    }
    const requests: Request[] = []
    for (const { counter } of refunds) requests.push(...this.#define(counter as Counter))
    for (const { charges } of pending) {
      for (const { counter } of charges) requests.push(...this.#define(counter as Counter))
    }
    if (refunds.length > 0) {
      const given = refunds.map(({ counter, key, cost, moment, wait = 0 }) => {
        return [numberOf(counter), key, cost, moment, wait] as const
      })
      requests.push(['giveBack', given])
    }
    if (leases.length > 0) {
      this.#batch++
      for (const { counter } of leases) requests.push(...this.#define(counter))
      this.#leasing.set(
        this.#batch,
        leases.map(({ awaiting }) => awaiting),
      )
      requests.push(['lease', this.#batch, leases.map(({ line }) => line)])
    }
    if (pending.length > 0) {
      this.#batch++
      this.#asked.set(this.#batch, pending)
      requests.push(['ask', this.#batch, pending.map(({ request: question }) => question)])
    }
    this.#send(this.#socket, requests)
  }

  /** The message that defines a rule, unless it was sent on this connection. */
  #define(counter: Counter): Request[] {
    if (counter.definedOn === this.#socket) return []
    counter.definedOn = this.#socket
    return [['define', counter.number, counter.rule]]
  }

  #send(socket: Socket, requests: readonly Request[]): void {
    socket.write(requests.map(encode).join(''))
  }

  #receive(reply: Reply): void {
    if (reply[0] === 'answer') {
      this.#fill(reply[1], reply[2], reply[3])
      return
    }
    if (reply[0] === 'late') {
      this.#fillLate(reply[1], reply[2], reply[3], reply[4])
      return
    }
    if (reply[0] === 'leased') {
      const awaiting = this.#leasing.get(reply[1]) ?? []
      this.#leasing.delete(reply[1])
      reply[2].forEach((answer, i) => {
        awaiting[i]?.resolve({ ...answer, delays: answer.delays.map(delay => delay ?? Number.POSITIVE_INFINITY) })
      })
      return
    }
    if (reply[0] === 'recall') {
      const counter = this.#leased.get(reply[1])
      if (counter) this.#watcher?.recalled(counter, reply[2])
      return
    }
    if (reply[0] === 'caughtUp' || reply[0] === 'keys' || reply[0] === 'grant' || reply[0] === 'done') {
      this.#inquiries.get(reply[1])?.resolve(reply[2])
      this.#inquiries.delete(reply[1])
      return
    }
    this.#membership.get(reply[1])?.resolve(reply[2])
    this.#membership.delete(reply[1])
  }

  #fill(batch: number, now: number, answers: readonly (AnsweredRequest | 0)[]): void {
    const late = new Map<number, Pending>()
    this.#asked.get(batch)?.forEach((pending, i) => {
      const answer = answers[i]!
      if (answer === 0) late.set(i, pending)
      else this.#answer(pending, now, answer)
    })
    this.#asked.delete(batch)
    if (late.size > 0) this.#late.set(batch, late)
  }

  #fillLate(batch: number, now: number, question: number, answer: AnsweredRequest): void {
    const late = this.#late.get(batch)
    const pending = late?.get(question)
    if (!pending) return
    late!.delete(question)
    if (late!.size === 0) this.#late.delete(batch)
    this.#answer(pending, now, answer)
  }

  #answer({ request: [isLook], charges, resolve }: Pending, now: number, [allowed, answered]: AnsweredRequest): void {
    charges.forEach((charge, i) => {
      fill(charge, answered[i]!)
      const { counter, key, cost, fits } = charge
      if (allowed && !isLook && counter.needsRelease && fits) this.#holdings.add(counter as Counter, key, cost)
    })
    resolve({ allowed, now })
  }
}

function numberOf(counter: FleetCounter): number {
  return (counter as Counter).number
}

function fill(charge: FleetCharge, [fits, wait, delays, remaining, resets]: AnsweredCharge): void {
  charge.fits = fits
  charge.wait = wait ?? Number.POSITIVE_INFINITY
  // a rule that has just changed may have another number of levels there
  charge.counter.meters.forEach((_meter: Meter, level) => {
    charge.delays[level] = level < delays.length ? (delays[level] ?? Number.POSITIVE_INFINITY) : 0
    charge.remaining[level] = remaining[level] ?? 0
    charge.resets[level] = level < resets.length ? (resets[level] ?? Number.POSITIVE_INFINITY) : 0
  })
}

function settledOf(settlement: FleetSettlement): readonly [counter: number, settled: Settled] {
  const { counter, reservation: id, key, cost, moment, wait = 0, actual, until, overrun } = settlement
  return [numberOf(counter), { id, key, cost, moment, wait, actual, until, overrun }]
}
