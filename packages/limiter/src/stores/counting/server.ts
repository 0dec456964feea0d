import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import type { Algorithm, Limit, Meter, WaitOptions } from '../../algorithms/algorithm.ts'
import { attempt, type Repeated, repeat } from '../../common/background.ts'
import { catchUpTable, type LevelCatchUp } from '../catch-up.ts'
import type { Membership } from '../membership/registry.ts'
import { ShareBook } from '../membership/shares.ts'
import { LimitFamily } from '../memory/limit-family.ts'
import { type LocalCharge, localCharge, MemoryStore } from '../memory/memory-store.ts'
import { OVERFLOW_SLOT, type Table } from '../memory/table.ts'
import type { LeaseAnswer } from '../store.ts'
import { GrantedPermits } from './granted-permits.ts'
import { Holdings } from './holdings.ts'
import {
  type AnsweredRequest,
  type CountingRequest,
  type CountingRule,
  encode,
  type LeaseLine,
  type Request,
  readMessages,
} from './messages.ts'
import { ReservedCharges } from './reserved-charges.ts'

export interface CountingServerOptions {
  readonly algorithms: readonly Algorithm[]
  /** Whole microseconds. */
  readonly now: () => number
  readonly maxKeys?: number | undefined
}

interface Counted {
  readonly name: string
  terms: readonly unknown[]
  readonly table: Table
  readonly granted: GrantedPermits<CountingClient>
}

/** A charge to take back. */
interface Given {
  readonly key: string
  readonly cost: number
  readonly moment: number
  readonly wait: number
}

/** One client process: its rules by number, and the concurrency slots it holds. */
interface CountingClient {
  readonly id: string
  readonly socket: Socket
  readonly rules: Map<number, CountingRule>
  /** The numbers of counts, by their names. */
  readonly numbers: Map<string, number>
  readonly holdings: Holdings<string>
  /** Its last heartbeat, and whether all it had counted is known here; undefined for a client that only reads. */
  sign?: { readonly at: number; readonly isBack: boolean } | undefined
}

/** A key whose permits a call may need. */
interface Recallable {
  readonly granted: GrantedPermits<CountingClient>
  readonly key: string
}

const SWEEP_EVERY_MS = 200
const SWEEP_KEYS = 2048

/** Counts for several processes of this machine. The slots of a process that exits are released at once. */
export class CountingServer {
  readonly #options: CountingServerOptions
  readonly #store: MemoryStore
  readonly #counted = new Map<string, Counted>()
  readonly #families = new Map<string, LimitFamily>()
  readonly #server: Server
  /** In the order in which they came, which is their rank. */
  readonly #clients = new Map<Socket, CountingClient>()
  readonly #era = randomUUID()
  readonly #shares = new ShareBook()
  readonly #reserved: ReservedCharges
  #sweeping: Repeated | undefined
  #resetAt = 0

  constructor(options: CountingServerOptions) {
    this.#options = options
    this.#store = new MemoryStore({ maxKeys: options.maxKeys })
    this.#reserved = new ReservedCharges(this.#store)
    this.#server = createServer(socket => this.#serve(socket))
  }

  async listen(path: string): Promise<void> {
    // what a process that was killed has left behind
    await rm(path, { force: true })
    this.#server.listen(path)
    await once(this.#server, 'listening')
    this.#sweeping = repeat('counts for other processes', SWEEP_EVERY_MS, () => this.#sweep())
  }

  async close(): Promise<void> {
    this.#sweeping?.stop()
    for (const socket of this.#clients.keys()) socket.destroy()
    this.#server.close()
    await once(this.#server, 'close')
  }

  #serve(socket: Socket): void {
    const client: CountingClient = {
      id: randomUUID(),
      socket,
      rules: new Map(),
      numbers: new Map(),
      holdings: new Holdings(),
    }
    this.#clients.set(socket, client)
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#clients.delete(socket)
      this.#shares.leave(client.id)
      this.#free(client)
    })
    readMessages<Request>(socket, request => this.#apply(client, request, socket))
  }

  #apply(client: CountingClient, request: Request, socket: Socket): void {
    switch (request[0]) {
      case 'define':
        client.rules.set(request[1], request[2])
        client.numbers.set(this.#count(request[2]).name, request[1])
        return
      case 'ask': {
        const now = this.#now()
        this.#releaseEnded(now)
        const answers = request[2].map((question, i) => this.#answer(client, request[1], question, i, now))
        socket.write(encode(['answer', request[1], now, answers]))
        return
      }
      case 'lease': {
        const now = this.#now()
        this.#releaseEnded(now)
        const answers = request[2].map(line => this.#lease(client, line, now))
        socket.write(encode(['leased', request[1], answers]))
        return
      }
      case 'giveBack':
        for (const [number, key, cost, moment, wait] of request[1]) {
          this.#giveBack(client, number, { key, cost, moment, wait })
        }
        return
      case 'settle': {
        const now = this.#now()
        this.#releaseEnded(now)
        for (const [number, settled] of request[2]) {
          this.#reserved.settle(this.#countedBy(client, number), settled, now)
        }
        socket.write(encode(['done', request[1], true]))
        return
      }
      case 'hold':
        for (const [number, key, cost] of request[1]) this.#hold(client, number, key, cost)
        return
      case 'catchUp': {
        const [, batch, number, key, levels] = request
        socket.write(encode(['caughtUp', batch, this.#catchUp(client, number, key, levels)]))
        return
      }
      case 'keys': {
        const [, batch, number, most] = request
        const keys = Array.from(this.#countedBy(client, number).table.entries(), ([key]) => key)
        socket.write(encode(['keys', batch, keys.slice(0, most)]))
        return
      }
      case 'reset': {
        const [, batch, number, key] = request
        const counted = this.#countedBy(client, number)
        // permits that were used before the reset are reported first
        counted.granted.recall(key, () => {
          this.#reset(counted, key)
          if (!socket.destroyed) socket.write(encode(['done', batch, true]))
        })
        return
      }
      case 'register':
        client.sign = { at: this.#options.now(), isBack: request[2] }
        socket.write(encode(['attendance', request[1], this.#membership(client, request[3])]))
        return
      case 'share': {
        const [, batch, claim] = request
        const grant = this.#shares.claim(client.id, claim, this.#options.now() / 1000)
        socket.write(encode(['grant', batch, grant]))
        return
      }
      case 'leave':
        client.sign = undefined
        this.#shares.leave(client.id)
    }
  }

  #membership(client: CountingClient, withinMs: number): Membership {
    const members = [...this.#clients.values()].filter(({ sign }) => sign)
    const since = this.#options.now() - withinMs * 1000
    const heard = members.filter(({ sign }) => sign!.at >= since)
    return {
      era: this.#era,
      size: members.length,
      rank: members.indexOf(client),
      heard: heard.length,
      back: heard.filter(({ sign }) => sign!.isBack).length,
    }
  }

  /** Answers a call; 0 if the answer comes later, when permits have been given back that the call may need. */
  #answer(
    client: CountingClient,
    batch: number,
    question: CountingRequest,
    place: number,
    now: number,
  ): AnsweredRequest | 0 {
    const answer = this.#decide(client, question, now)
    const keys = question[0]
      ? this.#held(client, question, now)
      : answer[0]
        ? []
        : this.#recallable(client, question, answer, now)
    if (keys.length === 0) return answer
    let open = keys.length
    const end = (): void => {
      if (--open > 0 || client.socket.destroyed) return
      const later = this.#now()
      this.#releaseEnded(later)
      const late = this.#decide(client, question, later)
      client.socket.write(encode(['late', batch, later, place, late]))
    }
    // the batch is answered first
    queueMicrotask(() => {
      for (const { granted, key } of keys) attempt('calls that waited for permits', () => granted.recall(key, end))
    })
    return 0
  }

  /** The keys of a call whose permits are held: what is left of them is known when they are back. */
  #held(client: CountingClient, [, asked]: CountingRequest, now: number): Recallable[] {
    const keys = asked.map(([number, key]) => ({ granted: this.#countedBy(client, number).granted, key }))
    return keys.filter(({ granted, key }) => granted.isRecallable(key, now))
  }

  /** The keys whose permits a refused call needs; none if it is refused whatever is given back. */
  #recallable(
    client: CountingClient,
    [, asked]: CountingRequest,
    [, answered]: AnsweredRequest,
    now: number,
  ): Recallable[] {
    const keys: Recallable[] = []
    for (const [i, [number, key, cost, enforced]] of asked.entries()) {
      const [fits] = answered[i]!
      if (fits || !enforced) continue
      const { table, granted } = this.#countedBy(client, number)
      const [state, base] = [table.state(table.find(key)), table.base(table.find(key))]
      const isFree = table.meters.every((meter, level) => {
        return meter.delay(state, base + table.offsets[level]!, now, cost) <= meter.maxWaitUs
      })
      if (!isFree || !granted.isRecallable(key, now)) return []
      keys.push({ granted, key })
    }
    return keys
  }

  #lease(
    client: CountingClient,
    [number, key, sequence, used, kept, needed, wanted]: LeaseLine,
    now: number,
  ): LeaseAnswer {
    const { granted } = this.#countedBy(client, number)
    const uses = used.map(([amount, ageUs]) => ({ amount: amount ?? Number.POSITIVE_INFINITY, ageUs }))
    return granted.request(client, { counter: undefined, key, sequence, used: uses, kept, needed, wanted }, now)
  }

  #decide(client: CountingClient, [isLook, asked]: CountingRequest, now: number): AnsweredRequest {
    const counted = asked.map(([number]) => this.#countedBy(client, number))
    const charges = asked.map(([, key, cost, enforced, mayWait], i): LocalCharge => {
      const { table, granted } = counted[i]!
      const held = granted.size === 0 ? 0 : granted.heldOf(key, now)
      return { ...localCharge(table), key, cost, enforced, mayWait, held }
    })
    const allowed = isLook
      ? this.#store.look(charges, charges.length, now)
      : this.#store.take(charges, charges.length, now)
    const answered = charges.map(({ table, key, cost, fits, wait, delays, remaining, resets }, i) => {
      const isHeld = allowed && !isLook && fits && cost > 0 && table.meters.some(meter => meter.held !== undefined)
      if (isHeld) client.holdings.add(counted[i]!.name, key, cost)
      const [, , , , , reservation = 0, holdUs = 0] = asked[i]!
      if (allowed && !isLook && fits && cost > 0 && holdUs > 0) {
        const terms = { key, cost, moment: now + wait, holdUs, until: now + holdUs }
        this.#reserved.add(reservation, counted[i]!, terms)
      }
      return [fits, wait, delays, remaining, resets] as const
    })
    return [allowed, answered]
  }

  #releaseEnded(now: number): void {
    this.#reserved.releaseEnded(now, ({ table, key, cost, moment, until, holdUs }) => {
      if (table.isResetSince(key, until - holdUs)) return
      giveBack(table, key, cost, until, moment)
    })
  }

  /** Slots that a process has held since before this one was started. */
  #hold(client: CountingClient, number: number, key: string, cost: number): void {
    const { name, table } = this.#countedBy(client, number)
    const charge: LocalCharge = { ...localCharge(table), key, cost, enforced: false, mayWait: true }
    this.#store.take([charge], 1, this.#options.now())
    if (charge.fits) client.holdings.add(name, key, cost)
  }

  #catchUp(client: CountingClient, number: number, key: string, levels: readonly LevelCatchUp[]): readonly number[] {
    const { table } = this.#countedBy(client, number)
    const now = this.#options.now()
    const missed = { counter: { meters: table.meters, needsRelease: false }, key, levels, unfit: [] }
    const slot = this.#store.slotFor(table, key, now)
    // with as many keys as there may be, this one is counted together with others
    if (slot !== undefined) catchUpTable(table, slot, missed, now)
    return missed.unfit
  }

  #giveBack(client: CountingClient, number: number, refund: Given): void {
    const { name, table } = this.#countedBy(client, number)
    const { key, cost, moment, wait } = refund
    if (table.isResetSince(key, moment - wait)) return
    if (table.meters.some(meter => meter.held !== undefined)) client.holdings.add(name, key, -cost)
    giveBack(table, key, cost, this.#options.now(), moment)
  }

  /** Earlier charges are not refunded any more; a charge in the same microsecond counts as later. */
  #reset({ name, table }: Counted, key: string): void {
    this.#resetAt = this.#now() + 1
    table.reset(key, this.#resetAt)
    for (const { holdings } of this.#clients.values()) holdings.drop(name, key)
  }

  #now(): number {
    return Math.max(this.#options.now(), this.#resetAt)
  }

  #free({ holdings }: CountingClient): void {
    const now = this.#options.now()
    for (const [name, key, cost] of holdings) {
      const counted = this.#counted.get(name)
      if (counted) giveBack(counted.table, key, cost, now, now, 'held')
    }
  }

  #countedBy(client: CountingClient, number: number): Counted {
    const rule = client.rules.get(number)
    if (rule === undefined) throw new Error(`no rule is defined under number ${number}`)
    return this.#counted.get(nameOf(rule)) ?? this.#count(rule)
  }

  /** The counts of a rule; a rule whose limit has changed keeps its counts. */
  #count(rule: CountingRule): Counted {
    const name = nameOf(rule)
    const known = this.#counted.get(name)
    if (known && isDeepStrictEqual(known.terms, rule.terms)) return known
    const meters = this.#metersOf(rule)
    if (known) {
      known.table.adopt(meters, this.#options.now(), { keepsPast: true })
      known.terms = rule.terms
      return known
    }
    const table = this.#store.createTable(name, meters)
    const granted = new GrantedPermits<CountingClient>(this.#store, table, ({ socket, numbers }, key) => {
      socket.write(encode(['recall', numbers.get(name)!, key]))
    })
    const counted = { name, terms: rule.terms, table, granted }
    this.#counted.set(name, counted)
    if (rule.limit !== undefined) this.#familyOf(rule).add(counted.table, rule.limit === 'stated')
    return counted
  }

  /** The tables of all limits of a rule. */
  #familyOf({ id, algorithm, by }: CountingRule): LimitFamily {
    const name = JSON.stringify([id, algorithm, by])
    const family = this.#families.get(name) ?? new LimitFamily()
    this.#families.set(name, family)
    return family
  }

  #metersOf({ algorithm: name, terms }: CountingRule): Meter[] {
    const algorithm = this.#options.algorithms.find(candidate => candidate.name === name)
    if (algorithm === undefined) throw new Error(`there is no algorithm ${name}`)
    const [limits, options, waitOptions] = terms as [Limit[], Record<string, unknown>, WaitOptions | null | undefined]
    return limits.map(limit => algorithm.meter(limit, options, waitOptions ?? undefined))
  }

  #sweep(): void {
    const now = this.#options.now()
    this.#store.sweep(SWEEP_KEYS, now)
    for (const [name, { table, granted }] of this.#counted) {
      attempt('counts for other processes', () => {
        granted.sweep(now)
        // a rule that is gone leaves nothing behind once its counts mean nothing
        if (table.keys > 0 || granted.size > 0 || !isIdle(table, now)) return
        table.family?.removeEmpty(other => other !== table)
        this.#counted.delete(name)
        this.#store.dropTable(name)
      })
    }
  }
}

/** A rule with another algorithm or other dimensions starts from zero. */
function nameOf({ id, algorithm, by, limit, terms }: CountingRule): string {
  return JSON.stringify(limit === undefined ? [id, algorithm, by] : [id, algorithm, by, terms])
}

function isIdle(table: Table, now: number): boolean {
  return table.meters.every((meter, level) => meter.idleAt(table.state(OVERFLOW_SLOT), table.offsets[level]!) <= now)
}

function giveBack(
  table: Table,
  key: string,
  cost: number,
  now: number,
  moment: number,
  which: 'held' | 'all' = 'all',
): void {
  const applies = (meter: Meter): boolean => which === 'all' || meter.held !== undefined
  if (table.family !== undefined) {
    table.family.giveBack(key, now, cost, moment, applies)
    return
  }
  const slot = table.find(key)
  // the key was forgotten, and what is not counted cannot be taken back
  if (slot === OVERFLOW_SLOT && key !== '' && !table.isOverflowing(now)) return
  table.giveBack(slot, now, cost, moment, applies)
}
