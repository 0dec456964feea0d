import { randomInt } from 'node:crypto'
import type { LuaAlgorithm } from '../../algorithms/algorithm.ts'
import { attempt, type Repeated, repeat, visitAll } from '../../common/background.ts'
import { reportFault } from '../../common/faults.ts'
import { DianaError } from '../../errors.ts'
import type { LeaseAnswer, LeaseRequest } from '../store.ts'
import {
  type Answered,
  type AnswerListener,
  type FleetCounter,
  type FleetSettlement,
  releaseOf,
  type SharedStore,
  type StoreWatcher,
} from '../store.ts'
import { CountsLost } from '../store-error.ts'
import { type BatchTerms, decodeBatch, decodeBirths, decodeLayouts, encodeBatch, encodeKeep } from './batch.ts'
import { ClockSteps } from './clock-steps.ts'
import {
  fieldOf,
  keyOf,
  LEASE_MS,
  PARTITIONS_ON_CLUSTER,
  type RedisCharge,
  type RedisCounter,
  type RedisCounterRule,
  type RedisPartition,
  redisCharge,
  redisCounter,
} from './counter.ts'
import { type Engine, engineWith } from './engine/engine.ts'
import { EngineClient } from './engine/engine-client.ts'
import { HeldSlots } from './held-slots.ts'
import { allParts, FAN_OUT, type RedisLayout } from './layout.ts'
import type { RedisCatchUp, RedisLease, Refund, ScriptRequest } from './script-request.ts'
import type { SendCommand } from './send-command.ts'

export interface RedisStoreOptions {
  /** What every key begins with; default: diana. */
  readonly prefix?: string | undefined
  readonly isCluster?: boolean | undefined
  /** Sends a command to every master of a Cluster; without it, a Cluster gets a script instead of functions. */
  readonly sendToMasters?: SendCommand | undefined
  /** Called once if the user of Redis may not load or call functions, so that a script is used. */
  readonly onFunctionsForbidden?: ((error: unknown) => void) | undefined
  /** Whole microseconds, for tests and replays; default: the clock of Redis. */
  readonly now?: (() => number) | undefined
  /** So many callers live in a hash before they are spread over several, for tests; default: 2000, or 1000 in a shard. */
  readonly callersPerHash?: number | undefined
  /** Versions of rules that are no longer used are forgotten at once, for tests; default: false. */
  readonly forgetsVersions?: boolean | undefined
}

/** A request, and what gets its answer. */
type Pending = ScriptRequest & { readonly listener: AnswerListener }

/**
 * So many calls or charges at most run in one function call, for it must not keep the server for long; one call is never cut.
 * Few enough that, with many calls under way, the server judges one batch while this process reads the answers to another.
 */
const BATCH_CALLS = 32
const BATCH_CHARGES = 128
/** If nothing is under way, and of late no more calls were than these, none waits for the turn to end. */
const FEW_CALLS = 8
/** Concurrency slots are renewed so long after a request was lost, and again as long as that fails. */
const CORRECT_MS = 250
/** Redis spreads callers further one level at a time, and rarely. */
const MOST_TRIES = 10
/** How many partitions of a rule are listed at the same time. */
const HOMES_AT_A_TIME = 32

/**
 * Counts in Redis, for the whole fleet. All calls of one turn of the event loop travel in one function call, or in two where
 * many are under way, and are judged there in the order they came, each by all its charges at once.
 *
 * On a Cluster a function sees one slot only. There a call's charges go out slot by slot, and if one slot refuses, what
 * the others took is given back: never over the limit, and for the length of that round trip a count may be too high.
 */
export class RedisStore implements SharedStore {
  readonly #send: SendCommand
  readonly #luaAlgorithms = new Map<string, LuaAlgorithm>()
  #engine: Engine | undefined
  readonly #engineClient: EngineClient
  readonly #prefix: string
  readonly #isCluster: boolean
  readonly #holder = randomInt(2 ** 47)
  readonly #now: (() => number) | undefined
  readonly #callersPerHash: number | undefined
  readonly #forgetsVersions: boolean | undefined
  /** How callers are spread, for partitions that have many: the last answer of Redis, by the name of the current hash. */
  readonly #layouts = new Map<string, RedisLayout>()
  readonly #partitions = new Map<string, RedisPartition>()
  readonly #clockSteps = new ClockSteps()
  #watcher: StoreWatcher | undefined
  readonly #leases = new HeldSlots()
  readonly #renewing: Repeated
  #correcting: NodeJS.Timeout | undefined
  readonly #flushSoon = (): void => this.#flush()
  #pending: Pending[] = []
  #underWay = 0
  /** As many were under way, or about to be, when answers came of late. */
  #load = 0
  #closed = false
  /** The counter made last for each tag: late refunds go by the limit in force. */
  readonly #counters = new Map<string, RedisCounter>()
  /** Since when each tag has the limit it has, if that was changed in this process. */
  readonly #changes = new Map<string, { readonly mark: number; readonly since: number | undefined }>()
  /** The last known clock of Redis, and the clock of this process then. */
  #heard: { readonly now: number; readonly atMs: number } | undefined

  constructor(send: SendCommand, options: RedisStoreOptions = {}) {
    this.#send = send
    const { isCluster, sendToMasters = isCluster ? undefined : send, onFunctionsForbidden } = options
    this.#engineClient = new EngineClient({ send, sendToMasters, onForbidden: onFunctionsForbidden })
    this.#prefix = options.prefix ?? 'diana'
    this.#isCluster = options.isCluster ?? false
    this.#now = options.now
    this.#callersPerHash = options.callersPerHash
    this.#forgetsVersions = options.forgetsVersions
    this.#renewing = repeat('slots held in Redis', LEASE_MS / 3, () => this.renew())
  }

  createCounter(rule: RedisCounterRule): RedisCounter {
    for (const { lua } of rule.meters) {
      if (!lua || this.#luaAlgorithms.get(lua.name) === lua) continue
      this.#luaAlgorithms.set(lua.name, lua)
      this.#engine = undefined
    }
    const counter = redisCounter(rule, {
      prefix: this.#prefix,
      isCluster: this.#isCluster,
      holder: this.#holder,
      partitions: this.#partitions,
      sinceOf: (tag, mark) => this.#sinceOf(tag, mark),
    })
    const before = this.#counters.get(counter.tag)
    this.#counters.set(counter.tag, counter)
    if (before && before.mark !== counter.mark) this.#announce(counter)
    return counter
  }

  /** Lets Redis convert what is counted so far before it expires by the limit of before. */
  #announce(counter: RedisCounter): void {
    for (const key of counter.keyPerPartition()) {
      this.#ask({ what: 'look', charges: [{ ...redisCharge(counter), key }] })
        .then(() => this.#keepShards(counter.partitionOf(key)))
        .catch(() => {})
    }
  }

  async #keepShards({ current }: RedisPartition): Promise<void> {
    const layout = this.#layouts.get(current)
    if (!layout) return
    for (const { level, names } of allParts(current, layout)) {
      await this.#evaluate([String(names.length + 1), current, ...names, encodeKeep(FAN_OUT ** level, this.#terms())])
    }
  }

  #sinceOf(tag: string, mark: number): number | undefined {
    const known = this.#changes.get(tag)
    if (known?.mark === mark) return known.since
    const since = known && this.#clock()
    this.#changes.set(tag, { mark, since })
    return since
  }

  /** The clock of Redis, or a little before it. */
  #clock(): number | undefined {
    if (this.#now) return this.#now()
    return this.#heard && Math.floor(this.#heard.now + (performance.now() - this.#heard.atMs) * 1000)
  }

  readonly #likelyClock = (): number => this.#clock() ?? Date.now() * 1000

  /** Judges all charges at once: every one is counted, or, if one refuses, none. */
  take(charges: readonly RedisCharge[]): Promise<Answered> {
    return new Promise((answered, failed) => this.takeFor({ answered, failed }, charges))
  }

  takeFor(listener: AnswerListener, charges: readonly RedisCharge[]): void {
    const groups = this.#isCluster ? bySlot(charges, charge => charge) : undefined
    if (!groups || groups.length === 1) this.#request({ what: 'take', charges, listener })
    else this.#takeApart(groups).then(listener.answered.bind(listener), listener.failed.bind(listener))
  }

  /** Decides all charges without counting any. */
  async look(charges: readonly RedisCharge[]): Promise<Answered> {
    const groups = this.#isCluster ? bySlot(charges, charge => charge) : [charges]
    const answers = await Promise.all(groups.map(group => this.#ask({ what: 'look', charges: group })))
    return { allowed: answers.every(({ allowed }) => allowed), now: answers[0]!.now }
  }

  /** Takes charges back without waiting; if the refund is lost, the counts stay on the safe side. */
  giveBack(charged: readonly Refund[]): void {
    if (this.#closed || charged.length === 0) return
    this.#leases.giveBack(charged)
    const refunds = charged.map(one => ({ ...one, counter: this.#counters.get(one.counter.tag) ?? one.counter }))
    for (const charges of this.#isCluster ? bySlot(refunds, refund => refund) : [refunds]) {
      this.#ask({ what: 'giveBack', charges }).catch(() => this.#lost(charges))
    }
  }

  /** Settles reservations, with the next batch. */
  async settle(settlements: readonly FleetSettlement[]): Promise<void> {
    const latest = settlements.map(one => {
      const counter = one.counter as RedisCounter
      return { ...one, counter: this.#counters.get(counter.tag) ?? counter }
    })
    const groups = this.#isCluster ? bySlot(latest, one => one) : [latest]
    await Promise.all(groups.map(charges => this.#ask({ what: 'settle', charges })))
  }

  /** Takes back what a call was charged at `now`. */
  refund(charges: readonly RedisCharge[], now: number): void {
    const all = charges.filter(({ cost, fits }) => cost > 0 && fits)
    const reserved = all.filter(({ holdUs }) => holdUs > 0)
    if (reserved.length > 0) this.settle(reserved.map(charge => releaseOf(charge, now))).catch(() => {})
    const counted = all.filter(({ holdUs }) => holdUs === 0)
    this.giveBack(counted.map(({ counter, key, cost, wait }) => ({ counter, key, cost, moment: now + wait, wait })))
  }

  /** Reports permits that this process has used in advance, and reserves others. */
  async lease(request: LeaseRequest<FleetCounter>): Promise<LeaseAnswer> {
    // by the limit that granted the permits, even if another one is in force by now
    const counter = request.counter as RedisCounter
    const holderKey = `${counter.partitionOf(request.key).current}:${this.#holder}${fieldOf(request.key)}`
    const lease: RedisLease = { ...request, counter, holderKey, answer: undefined }
    await this.#ask({ what: 'lease', charges: [lease] })
    return lease.answer!
  }

  /** Counts what Redis has missed of one key, and writes down what does not fit. */
  async catchUp(missed: RedisCatchUp): Promise<void> {
    await this.#ask({ what: 'catchUp', charges: [missed] })
  }

  /** Keys with counts, at most `most`. */
  async keys(counter: RedisCounter, most: number): Promise<string[]> {
    const found = new Set<string>()
    const partitions = counter.keyPerPartition()
    for (let i = 0; i < partitions.length && found.size < most; i += HOMES_AT_A_TIME) {
      await Promise.all(
        partitions.slice(i, i + HOMES_AT_A_TIME).map(key => this.#addKeysOfHome(counter, key, most, found)),
      )
    }
    return [...found]
  }

  /** Adds the keys in the partition of one key, at most `most`. */
  async #addKeysOfHome(counter: RedisCounter, one: string, most: number, found: Set<string>): Promise<void> {
    for await (const hash of this.#hashesOf(counter, one)) {
      if (found.size >= most) return
      for (let cursor: string | undefined = '0'; cursor !== undefined && found.size < most; ) {
        const reply: unknown = await this.#send(['HSCAN', hash, cursor, 'COUNT', '1000'])
        const [next, pairs] = reply as [unknown, unknown[]]
        for (let i = 0; i < pairs.length; i += 2) {
          const key = keyOf(String(pairs[i]))
          if (key !== undefined && found.size < most) found.add(key)
        }
        cursor = String(next) === '0' ? undefined : String(next)
      }
    }
  }

  /** All hashes of the partition of a key in which callers may be. */
  async *#hashesOf(counter: RedisCounter, key: string): AsyncGenerator<string> {
    const { current, previous } = counter.partitionOf(key)
    // the answer shows how the callers of this partition are spread
    await this.#ask({ what: 'look', charges: [{ ...redisCharge(counter), key }] })
    yield* [current, previous]
    const layout = this.#layouts.get(current)
    for (const { names } of layout ? allParts(current, layout) : []) yield* names
  }

  /** Forgets what is counted for one key of a rule. */
  async reset(counter: RedisCounter, key: string): Promise<void> {
    const latest = this.#counters.get(counter.tag) ?? counter
    this.#leases.drop(counter, key)
    const { now } = await this.#ask({ what: 'reset', charges: [{ counter: latest, key }] })
    this.#leases.dropped(counter, key, now)
  }

  watch(watcher: StoreWatcher): void {
    this.#watcher = watcher
  }

  /** Answers pending requests, and renews no more leases: the slots of this process are released soon. */
  close(): void {
    this.#closed = true
    this.#renewing.stop()
    clearTimeout(this.#correcting)
  }

  async #takeApart(groups: readonly (readonly RedisCharge[])[]): Promise<Answered> {
    const outcomes = await Promise.allSettled(groups.map(group => this.#ask({ what: 'take', charges: group })))
    const answers = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    if (answers.length === groups.length && answers.every(({ allowed }) => allowed)) return answers[0]!
    outcomes.forEach((outcome, i) => {
      if (outcome.status === 'fulfilled' && outcome.value.allowed) this.refund(groups[i]!, outcome.value.now)
    })
    const failure = outcomes.find(outcome => outcome.status === 'rejected')
    if (failure) throw failure.reason
    return { allowed: false, now: answers[0]!.now }
  }

  /** Renews the leases of this process, and resolves when Redis has answered; renewals that were lost are repeated. */
  async renew(): Promise<void> {
    // each on its own, so that a batch stays small, and a Cluster finds each in its slot
    const renewals = this.#leases.renewals().map(renewal => {
      return this.#ask({ what: 'renew', charges: [renewal] }).then(
        () => this.#leases.renewed(renewal),
        () => this.#lost([renewal]),
      )
    })
    await Promise.all(renewals)
  }

  /** Concurrency slots of requests that were lost are corrected soon, if Redis can be asked. */
  #lost(charges: readonly { readonly counter: RedisCounter; readonly key: string }[]): void {
    if (this.#closed) return
    this.#leases.lost(charges)
    if (!this.#leases.hasDoubts || this.#correcting) return
    this.#correcting = setTimeout(() => {
      this.#correcting = undefined
      if (this.#leases.hasDoubts) attempt('slots held in Redis', () => this.renew())
    }, CORRECT_MS).unref()
  }

  #ask({ what, charges }: ScriptRequest): Promise<Answered> {
    return new Promise((answered, failed) => {
      this.#request({ what, charges, listener: { answered, failed } } as Pending)
    })
  }

  #request(request: Pending): void {
    if (this.#closed) {
      request.listener.failed(new DianaError('CLOSED', 'the store is closed'))
      return
    }
    if (request.what === 'take') this.#leases.requested(request.charges)
    const waiting = this.#pending.push(request)
    if (waiting >= this.#enough) this.#flush()
    else if (waiting > 1) return
    else if (this.#underWay === 0 && this.#load <= FEW_CALLS) process.nextTick(this.#flushSoon)
    else setImmediate(this.#flushSoon)
  }

  /** Half of what is steadily under way, so that Redis judges the one half while this process reads the answers to the other. */
  get #enough(): number {
    if (this.#isCluster) return Number.POSITIVE_INFINITY
    if (this.#load <= FEW_CALLS) return BATCH_CALLS
    return Math.min(BATCH_CALLS, Math.max(Math.ceil(this.#load / 2), this.#underWay))
  }

  #flush(): void {
    const pending = this.#pending
    this.#pending = []
    const slots = this.#isCluster ? bySlot(pending, ({ charges }) => charges[0]!) : [pending]
    for (const slot of slots) for (const batch of batchesOf(slot)) void this.#run(batch)
  }

  async #run(batch: readonly Pending[]): Promise<void> {
    let exchanged: { readonly now: number; readonly allowed: readonly boolean[] }
    try {
      exchanged = await this.#exchange(batch)
    } catch (error) {
      const fail = (request: Pending): void => {
        this.#answered(request, false)
        if (request.what === 'take') this.#lost(request.charges)
        request.listener.failed(error)
      }
      visitAll('answers of Redis', batch, fail, () => {})
      return
    }
    const { now, allowed } = exchanged
    const readAtMs = this.#heard?.atMs
    const [yes, no] = [true, false].map(isAllowed => ({ allowed: isAllowed, now, readAtMs })) as [Answered, Answered]
    for (let i = 0; i < batch.length; i++) {
      const request = batch[i]!
      try {
        this.#answered(request, allowed[i]!)
        request.listener.answered(allowed[i] ? yes : no)
      } catch (error) {
        reportFault('answers of Redis', error)
      }
    }
  }

  #answered(request: ScriptRequest, allowed: boolean): void {
    if (request.what === 'take') this.#leases.answered(request.charges, allowed)
  }

  /** Asks again as long as Redis has callers spread otherwise than this process knew; nothing is counted until both agree. */
  async #exchange(requests: readonly ScriptRequest[]): Promise<{ now: number; allowed: boolean[] }> {
    this.#underWay += requests.length
    try {
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        const { keys, args, partitions } = encodeBatch(requests, this.#terms())
        const sent = partitions.map(({ createdAt }) => createdAt)
        const [sentAtMs, askedAtMs] = [performance.now(), this.#steadyMs()]
        const reply = await this.#evaluate([String(keys.length), ...keys, ...args])
        const births = decodeBirths(reply)
        if (births) {
          this.#compareBirths(partitions, sent, births)
          continue
        }
        const layouts = decodeLayouts(reply)
        if (!layouts) {
          const answer = decodeBatch(requests, reply, sent.includes(0) ? partitions : [])
          this.#hear(answer.now, sentAtMs)
          noteWhatMatters(requests, askedAtMs)
          return answer
        }
        for (const [h, layout] of layouts.entries()) this.#learn(keys[h * 2], layout)
      }
      throw new Error(`Redis answered ${MOST_TRIES} times that callers are spread otherwise`)
    } finally {
      // answers that come together would each make it seem less than it is
      this.#load = Math.max(this.#underWay + this.#pending.length, this.#load - 1)
      this.#underWay -= requests.length
    }
  }

  /** Throws if Redis has lost partitions with counts that still mattered; others may have expired. */
  #compareBirths(partitions: readonly RedisPartition[], sent: readonly number[], births: readonly number[]): void {
    let isLost = false
    partitions.forEach((partition, h) => {
      if (sent[h] === 0 || sent[h] === births[h]) return
      if (sent[h] === partition.createdAt) {
        if (this.#steadyMs() < partition.mattersUntil) partition.lost = partition.createdAt
        partition.createdAt = 0
        partition.mattersUntil = 0
      }
      if (sent[h] === partition.lost) isLost = true
    })
    if (!isLost) return
    this.#watcher?.countsLost()
    throw new CountsLost()
  }

  /** A clock that never steps, unless one is given from outside. */
  #steadyMs(): number {
    return this.#now ? this.#now() / 1000 : performance.now()
  }

  #hear(now: number, sentAtMs: number): void {
    const atMs = performance.now()
    this.#heard = { now, atMs }
    const stepMs = this.#clockSteps.observe(now / 1000, sentAtMs, atMs)
    if (stepMs === 0) return
    if (stepMs < 0) this.#leases.forgetResets()
    this.#watcher?.clockStepped(stepMs)
  }

  #terms(): BatchTerms {
    return {
      layouts: this.#layouts,
      homesPerRule: this.#isCluster ? PARTITIONS_ON_CLUSTER : 1,
      now: this.#now?.(),
      clock: this.#likelyClock,
      callersPerHash: this.#callersPerHash,
      forgetsVersions: this.#forgetsVersions,
    }
  }

  #learn(current: string | undefined, layout: RedisLayout): void {
    if (current === undefined) return
    if (layout.code === 0) this.#layouts.delete(current)
    else this.#layouts.set(current, layout)
  }

  #evaluate(rest: readonly string[]): Promise<unknown> {
    this.#engine ??= engineWith([...this.#luaAlgorithms.values()])
    return this.#engineClient.run(this.#engine, rest)
  }
}

/** Until when an answer of Redis matters at least: the engine ran after the request. */
function noteWhatMatters(requests: readonly ScriptRequest[], askedAtMs: number): void {
  for (const request of requests) {
    if (request.what !== 'take' && request.what !== 'lease') continue
    for (const charge of request.charges) {
      const { counter, key } = charge
      const resets = 'answer' in charge ? charge.answer!.resets : charge.resets
      const partition = counter.partitionOf(key)
      for (const reset of resets) {
        const untilMs = askedAtMs + Math.min(reset / 1000, counter.needsRelease ? LEASE_MS : reset / 1000)
        if (untilMs > partition.mattersUntil) partition.mattersUntil = untilMs
      }
    }
  }
}

/** Things put together by the slot of a Cluster that they belong to, in their order. */
function bySlot<T>(things: readonly T[], keyed: (thing: T) => { counter: RedisCounter; key: string }): T[][] {
  const groups = new Map<number, T[]>()
  for (const thing of things) {
    const { counter, key } = keyed(thing)
    const { slot } = counter.partitionOf(key)
    const group = groups.get(slot)
    if (group) group.push(thing)
    else groups.set(slot, [thing])
  }
  return [...groups.values()]
}

/** Cuts what is pending into batches of few charges; one that has many is a batch of its own. */
function batchesOf(pending: readonly Pending[]): Pending[][] {
  const batches: Pending[][] = []
  let batch: Pending[] = []
  let room = 0
  for (const one of pending) {
    const size = one.charges.length
    if (size > room || batch.length === BATCH_CALLS) {
      batch = []
      batches.push(batch)
      room = BATCH_CHARGES
    }
    batch.push(one)
    room -= size
  }
  return batches
}
