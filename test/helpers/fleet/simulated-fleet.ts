import { algorithms } from '../../../packages/limiter/src/algorithms/index.ts'
import { partMeter } from '../../../packages/limiter/src/algorithms/part.ts'
import { FailoverStore } from '../../../packages/limiter/src/stores/failover/failover-store.ts'
import type { Membership, MembershipRegistry } from '../../../packages/limiter/src/stores/membership/registry.ts'
import { ShareBook } from '../../../packages/limiter/src/stores/membership/shares.ts'
import { MemoryStore } from '../../../packages/limiter/src/stores/memory/memory-store.ts'
import { sharedCharge } from '../../../packages/limiter/src/stores/shared-charge.ts'
import type {
  Answered,
  FleetCharge,
  FleetCounter,
  LeaseRequest,
  SharedStore,
  StoreWatcher,
} from '../../../packages/limiter/src/stores/store.ts'
import { CountsLost } from '../../../packages/limiter/src/stores/store-error.ts'
import { LeasingStore } from '../../../packages/limiter/src/testing/stores/leasing-store.ts'

import { FleetDouble } from './fake-fleet.ts'
import type { Host, VirtualTime } from './virtual-time.ts'

export interface SimulatedRule {
  readonly algorithm: string
  readonly count: number
  readonly periodMs: number
  /** What a bucket admits at once. */
  readonly burst: number
  /** Processes hold permits in advance; default: not. */
  readonly isLeased?: boolean | undefined
}

export interface SimulatedProcess {
  readonly everyMs: number
  /** How long a question or an answer takes. */
  readonly latency: () => number
  readonly cost?: number | undefined
  readonly tickMs?: number | undefined
}

/** A call that was admitted, or refused, between its start and its end. */
export interface Admission {
  readonly process: number
  readonly start: number
  readonly end: number
  readonly by: string
}

/** What became of one call, and what takes it back. */
export interface SimulatedCall {
  readonly isAllowed: boolean
  readonly at: number
  readonly waitMs: number
  refund(): void
}

type Outage = 'silent' | 'refused'

/** A connection that dies without a word is replaced after so long. */
const SILENT_CONNECTION_MS = 600
const MEMBER_MS = 5000
/** What the clock that calls are counted by shows when virtual time begins. */
const BEGIN_MS = 1e12

/** Several processes with the code of production on virtual time, and the store that they share behind a network that fails. */
export class SimulatedFleet {
  readonly admitted: Admission[] = []
  readonly refused: Admission[] = []
  readonly store: FleetDouble | LeasingStore
  readonly #time: VirtualTime
  readonly #rule: SimulatedRule
  readonly #assumed: number | undefined
  readonly #book = new ShareBook()
  readonly #signs = new Map<string, { at: number; isBack: boolean }>()
  readonly links: Link[] = []
  /** What processes were told, for a look at a scene that fails. */
  readonly events: string[] = []
  /** Whether a process has counted without the store. */
  hasBeenAway = false
  #processes = 0

  constructor(time: VirtualTime, rule: SimulatedRule, assumed?: number) {
    this.#time = time
    this.#rule = rule
    this.store = rule.isLeased ? new LeasingStore() : new FleetDouble()
    this.#assumed = assumed
  }

  /**
   * Starts a process that calls every `everyMs`, and all that it has missed if it was stalled; never if that is Infinity. It looks at the
   * clock every `tickMs`; by default every 5 ms, or as often as it calls.
   */
  async join({ everyMs, latency, cost: usualCost = 1, tickMs = Math.min(5, everyMs) }: SimulatedProcess) {
    const time = this.#time
    const index = this.#processes++
    const host: Host = { stalledUntil: 0 }
    const link = new Link(time, host, latency, () => this.#tick())
    this.links.push(link)
    return await time.as(host, async () => {
      const { algorithm: name, count, periodMs, burst } = this.#rule
      const algorithm = algorithms.find(candidate => candidate.name === name)!
      const terms = { limit: { count, periodMs }, options: optionsOf(name, burst) }
      const meters = [algorithm.meter(terms.limit, terms.options)]
      const memory = new MemoryStore()
      const table = memory.createTable('rule', meters)
      const now = (): number => this.#nowUs
      const counter = this.store.createCounter({ id: 'rule', meters, algorithm: name, enforced: true })
      const shared = new FailoverStore(link.storeFor(this.store, `process-${index}`), memory, {
        timeoutMs: 400,
        registry: this.#registryOf(`process-${index}`, link),
        assumedFleet: this.#assumed,
        now,
        rules: () => ['rule'],
        onPart: part => {
          this.events.push(`${time.now.toFixed(0)} p${index} part ${part.rank}/${part.size}`)
          table.adopt([partMeter(algorithm, terms, part)], now())
        },
        onChange: ({ healthy, trouble }) => {
          this.hasBeenAway ||= !healthy
          this.events.push(`${time.now.toFixed(0)} p${index} ${healthy ? 'back' : 'away'} ${trouble ?? ''}`)
        },
        onReady: listener => {
          link.onReady = listener
        },
        onLost: listener => {
          link.onLost = listener
        },
      })
      table.adopt([partMeter(algorithm, terms, shared.part)], now())
      await shared.start()
      let isOver = false
      const began = time.now
      const call = async (key: string, cost = usualCost): Promise<SimulatedCall> => {
        const start = time.now
        const charge = Object.assign(sharedCharge(counter, table, 'share'), { key, cost, mayWait: false })
        const { size, rank } = shared.part
        const isAllowed = await shared.take([charge], now())
        const by = `${charge.countedBy} ${rank}/${size}${shared.status.healthy ? '' : ' away'}`
        const outcomes = isAllowed ? this.admitted : this.refused
        outcomes.push({ process: index, start, end: time.now, by })
        return { isAllowed, at: time.now, waitMs: charge.wait / 1000, refund: () => shared.giveBack(charge, cost) }
      }
      let called = 0
      const work = (): void => {
        if (isOver || everyMs === Number.POSITIVE_INFINITY) return
        for (; began + called * everyMs <= time.now; called++) void call('ann')
        time.after(tickMs, work)
      }
      work()
      return {
        shared,
        host,
        link,
        /** One more call. */
        call: (cost: number) => time.as(host, () => call('ann', cost)),
        /** Ends without a word. */
        die(): void {
          isOver = true
          link.cut('refused')
        },
        /** As after the rules have changed. */
        reconsider: () => time.as(host, () => shared.reconsider()),
        async leave(): Promise<void> {
          isOver = true
          await time.as(host, () => shared.close())
        },
      }
    })
  }

  /** The store is away for all, until `mend`. */
  cut(kind: Outage): void {
    for (const link of this.links) link.cut(kind)
  }

  /** Each process can ask again after up to `withinMs`. */
  mend(withinMs: number): void {
    for (const link of this.links) link.mend(Math.random() * withinMs)
  }

  get #nowUs(): number {
    return Math.round((BEGIN_MS + this.#time.now) * 1000)
  }

  #tick(): void {
    this.store.now = this.#nowUs
  }

  #registryOf(id: string, link: Link): MembershipRegistry {
    return {
      era: () => link.ask(() => String(this.store.era)),
      register: sign => link.ask(() => this.#register(id, sign)),
      share: claim => link.ask(() => this.#book.claim(id, claim, this.#time.now)),
      leave: () =>
        link.ask(() => {
          this.#signs.delete(id)
          this.#book.leave(id)
        }),
    }
  }

  #register(id: string, { isBack, withinMs }: { isBack: boolean; withinMs: number }): Membership {
    const { now } = this.#time
    this.#signs.set(id, { at: now, isBack })
    for (const [other, { at }] of this.#signs) if (now - at > MEMBER_MS) this.#signs.delete(other)
    const heard = [...this.#signs.values()].filter(({ at }) => now - at <= withinMs)
    const rank = [...this.#signs.keys()].sort().indexOf(id)
    const back = heard.filter(sign => sign.isBack).length
    return { era: String(this.store.era), size: this.#signs.size, rank, heard: heard.length, back }
  }
}

/** The way of one process to the store: in order, late, and now and then cut. */
class Link {
  readonly #time: VirtualTime
  readonly #host: Host
  readonly #beforeAsking: () => void
  latency: () => number
  onReady: () => void = () => {}
  onLost: () => void = () => {}
  #generation = 0
  #outage: Outage | undefined
  #arrivesAt = 0
  #answeredAt = 0
  readonly #open = new Set<(error: Error) => void>()

  constructor(time: VirtualTime, host: Host, latency: () => number, beforeAsking: () => void) {
    this.#time = time
    this.#host = host
    this.latency = latency
    this.#beforeAsking = beforeAsking
  }

  cut(kind: Outage): void {
    this.#outage = kind
    this.#generation++
    const open = [...this.#open]
    this.#open.clear()
    const fail = (): void => {
      for (const reject of open) reject(new Error('read ECONNRESET'))
      this.onLost()
    }
    this.#time.as(this.#host, () => this.#time.after(kind === 'refused' ? 0 : SILENT_CONNECTION_MS, fail))
  }

  mend(afterMs: number): void {
    const generation = this.#generation
    this.#time.as(this.#host, () => {
      this.#time.after(afterMs, () => {
        if (generation !== this.#generation) return
        this.#outage = undefined
        this.onReady()
      })
    })
  }

  ask<T>(run: () => T | Promise<T>): Promise<T> {
    if (this.#outage === 'refused') return Promise.reject(new Error('connect ECONNREFUSED'))
    const time = this.#time
    const generation = this.#generation
    return new Promise<T>((resolve, reject) => {
      this.#open.add(reject)
      if (this.#outage) return
      this.#arrivesAt = Math.max(this.#arrivesAt, time.now + this.latency())
      const arrive = async (): Promise<void> => {
        if (generation !== this.#generation) return
        this.#beforeAsking()
        const answer = await run()
        this.#answeredAt = Math.max(this.#answeredAt, time.now + this.latency())
        const answered = (): void => {
          if (generation !== this.#generation) return
          this.#open.delete(reject)
          resolve(answer)
        }
        time.as(this.#host, () => time.after(this.#answeredAt - time.now, answered))
      }
      // a process that is stalled does not stall the store
      time.as(undefined, () => time.after(this.#arrivesAt - time.now, () => void arrive()))
    })
  }

  storeFor(store: FleetDouble | LeasingStore, holder: string): SharedStore {
    let { era } = store
    let watcher: StoreWatcher | undefined
    const askSame = async <T>(ask: () => T | Promise<T>): Promise<T> => {
      const askedEra = era
      const answer = await this.ask(async () => (store.era === askedEra ? { is: await ask() } : undefined))
      if (answer) return answer.is
      era = store.era
      watcher?.countsLost()
      throw new CountsLost()
    }
    const judged = (ask: (charges: readonly FleetCharge[]) => Answered | Promise<Answered>): SharedStore['take'] => {
      return async charges => {
        const copies = charges.map(charge => ({ ...charge, delays: [], remaining: [], resets: [] }))
        const answer = await askSame(() => ask(copies))
        for (const [i, { wait, fits, delays, remaining, resets }] of copies.entries()) {
          Object.assign(charges[i]!, { wait, fits, delays, remaining, resets })
        }
        return answer
      }
    }
    return {
      createCounter: rule => store.createCounter(rule),
      take: judged(charges => store.take(charges)),
      look: judged(charges => store.look(charges)),
      ...(store instanceof LeasingStore && {
        lease: (request: LeaseRequest<FleetCounter>) => askSame(() => store.lease(holder, request)),
      }),
      giveBack: refunds => void this.ask(() => store.giveBack(refunds)).catch(() => {}),
      catchUp: missed => this.ask(() => store.catchUp(missed)),
      keys: (counter, most) => this.ask(() => store.keys(counter, most)),
      reset: (counter, key) => this.ask(() => store.reset(counter, key)),
      watch: one => {
        watcher = one
      },
      close: () => {},
    }
  }
}

export function optionsOf(algorithm: string, burst: number): { burst?: number } {
  if (algorithm === 'token-bucket') return { burst }
  // beside the call under way
  return algorithm === 'leaky-bucket' ? { burst: burst - 1 } : {}
}

/** By how many calls the limit is exceeded in the worst interval, whenever each call was decided between its start and its end. */
export function overLimit(calls: readonly Admission[], { algorithm, count, periodMs, burst }: SimulatedRule): number {
  if (algorithm === 'fixed-window') return overFixedWindow(calls, count, periodMs)
  const isBucket = algorithm.endsWith('-bucket')
  const byEnd = calls.toSorted((a, b) => a.end - b.end)
  let most = 0
  for (const { start } of calls) {
    let inside = 0
    for (const call of byEnd) {
      if (call.start < start) continue
      if (!isBucket && call.end >= start + periodMs) break
      inside++
      const room = isBucket ? burst + (count * (call.end - start)) / periodMs : count
      most = Math.max(most, Math.floor(inside - room + 1e-6))
    }
  }
  return most
}

/** Windows begin at whole periods, by the clock that calls are counted by. */
function overFixedWindow(calls: readonly Admission[], count: number, periodMs: number): number {
  const inside = new Map<number, number>()
  for (const { start, end } of calls) {
    const window = Math.floor((BEGIN_MS + start) / periodMs)
    if (window === Math.floor((BEGIN_MS + end) / periodMs)) inside.set(window, (inside.get(window) ?? 0) + 1)
  }
  return Math.max(0, ...Array.from(inside.values(), calls => calls - count))
}
