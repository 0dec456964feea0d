import { randomInt } from 'node:crypto'
import type { LuaAlgorithm } from '../../algorithms/algorithm.ts'
import { visitAll } from '../../common/background.ts'
import { reportFault } from '../../common/faults.ts'
import { DianaError } from '../../errors.ts'
import { HeldSlots, LEASE_MS } from '../held-slots.ts'
import { callerOf } from '../ledger-keys.ts'
import { OwnResets } from '../own-resets.ts'
import {
  type Answered,
  type AnswerListener,
  type FleetCounter,
  type FleetSettlement,
  type LeaseAnswer,
  type LeaseRequest,
  type SharedStore,
  type StoreWatcher,
  takeBack,
} from '../store.ts'
import { UnreadableReply } from '../store-error.ts'
import { UsedVersions } from '../used-versions.ts'
import { BATCH_CALLS, batchesOf, bySlot } from './batches.ts'
import { ClockSteps } from './clock-steps.ts'
import { type RedisCharge, type RedisCounter, type RedisCounterRule, redisCharge, redisCounter } from './counter.ts'
import { type Engine, engineWith, isOwnLua } from './engine/engine.ts'
import { EngineClient } from './engine/engine-client.ts'
import { compareEra, type Era, Eras } from './era.ts'
import { readReply } from './read-reply.ts'
import { type BatchTerms, encodeBatch } from './request-writer.ts'
import { escapePattern, scan } from './scan.ts'
import type { RedisCatchUp, RedisLease, Refund, ScriptRequest } from './script-request.ts'
import type { SendCommand } from './send-command.ts'

export interface RedisStoreOptions {
  /** What every key begins with; default: diana. */
  readonly prefix?: string | undefined
  readonly isCluster?: boolean | undefined
  /** The masters of a Cluster; without them, a Cluster gets a script instead of functions, and its callers cannot be listed. */
  readonly masters?: (() => readonly SendCommand[]) | undefined
  /** Called once if the user of Redis may not load or call functions, so that a script is used. */
  readonly onFunctionsForbidden?: ((error: unknown) => void) | undefined
  /** Whole microseconds, for tests and replays; default: the clock of Redis. */
  readonly now?: (() => number) | undefined
  /** The number under which it holds slots and permits, for tests; default: a random one. */
  readonly holder?: number | undefined
  /** Limits that are no longer used are forgotten at once, for tests; default: false. */
  readonly forgetsLimits?: boolean | undefined
}

/** A request, and what gets its answer. */
type Pending = ScriptRequest & { readonly listener: AnswerListener }

/** If nothing is under way, and of late no more calls were than these, none waits for the turn to end. */
const FEW_CALLS = 8
/** A request is repeated at most so often: with descriptions of rules, and after counts were lost that did not matter. */
const MOST_TRIES = 10
/** For how long Redis keeps a ledger that is idle. */
const LINGER_MS = 1000
/** With a clock given from outside, time in Redis and time in the test run at different speeds. */
const TEST_LINGER_MS = 600_000

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
  readonly #holder: number
  readonly #now: (() => number) | undefined
  readonly #masters: (() => readonly SendCommand[]) | undefined
  readonly #forgetsLimits: boolean
  readonly #eras: Eras
  readonly #clockSteps = new ClockSteps()
  #watcher: StoreWatcher | undefined
  readonly #slots = new HeldSlots<RedisCounter>(renewal => this.#ask({ what: 'renew', charges: [renewal] }))
  readonly #resets = new OwnResets()
  readonly #flushSoon = (): void => this.#flush()
  #pending: Pending[] = []
  #underWay = 0
  /** As many were under way, or about to be, when answers came of late. */
  #load = 0
  #closed = false
  /** The counter made last for each tag, and for each limit of a rule that has several: late refunds go by the limit in force. */
  readonly #counters = new Map<string, RedisCounter>()
  /** Counters of rules whose limit has changed, and whose counts are not continued yet. */
  readonly #changed = new Set<RedisCounter>()
  readonly #versions = new UsedVersions()
  #continuing: Promise<void> = Promise.resolve()
  /** The last known clock of Redis, and the clock of this process then. */
  #heard: { readonly now: number; readonly atMs: number } | undefined

  constructor(send: SendCommand, options: RedisStoreOptions = {}) {
    this.#send = send
    const { isCluster, masters = isCluster ? undefined : () => [send], onFunctionsForbidden } = options
    const sendToMasters = masters && toAll(masters)
    this.#engineClient = new EngineClient({ send, sendToMasters, onForbidden: onFunctionsForbidden })
    this.#prefix = options.prefix ?? 'diana'
    this.#isCluster = options.isCluster ?? false
    this.#now = options.now
    this.#masters = masters
    this.#holder = options.holder ?? randomInt(2 ** 47)
    this.#forgetsLimits = options.forgetsLimits ?? false
    this.#eras = new Eras(this.#prefix, this.#isCluster)
  }

  createCounter(rule: RedisCounterRule): RedisCounter {
    for (const { redis } of rule.meters) {
      const lua = redis?.lua
      if (lua === undefined || isOwnLua(lua) || this.#luaAlgorithms.get(lua.name) === lua) continue
      this.#luaAlgorithms.set(lua.name, lua)
      this.#engine = undefined
    }
    const counter = redisCounter(rule, this.#prefix)
    const before = this.#counters.get(nameOf(counter))
    this.#counters.set(nameOf(counter), counter)
    if (before?.mark === counter.mark) Object.assign(counter, { since: before.since, countsSince: before.countsSince })
    else if (before && !counter.varies) this.#change(before, counter)
    return counter
  }

  #latest(counter: RedisCounter): RedisCounter {
    return this.#counters.get(nameOf(counter)) ?? counter
  }

  /** The limit of a rule has changed: what callers have used is continued by it before it expires by the limit of before. */
  #change(before: RedisCounter, counter: RedisCounter): void {
    counter.since = this.#clock() ?? -1
    counter.countsSince = this.#versions.use(before, counter, this.#forgetsLimits)
    this.#changed.add(counter)
    if (this.#changed.size > 1) return
    this.#continuing = new Promise<void>(resolve => setImmediate(resolve))
      .then(() => this.#continueChanged())
      .catch(() => {})
  }

  /** Resolves when the counts of changed rules are continued by their new limits, or will be by the next call of each caller. */
  continued(): Promise<void> {
    return this.#continuing
  }

  /** One process of a fleet is enough, and looks at all keys once for all rules that have changed. */
  async #continueChanged(): Promise<void> {
    const counters = [...this.#changed]
    this.#changed.clear()
    const lock = `${this.#prefix}:changed:${counters.map(({ mark }) => mark).join()}`
    if (!this.#now && (await this.#send(['SET', lock, '1', 'PX', String(LINGER_MS), 'NX'])) === null) return
    await scan(this.#masters?.() ?? [], `${escapePattern(this.#prefix)}:*`, async names => {
      const renewals = names.flatMap(name => {
        const counter = counters.find(one => !one.needsRelease && callerOf(one, name) !== undefined)
        return counter ? [{ counter, key: callerOf(counter, name)!, least: 0, most: 0 }] : []
      })
      await Promise.all(renewals.map(renewal => this.#ask({ what: 'renew', charges: [renewal] })))
      return !this.#closed
    })
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
  giveBack(given: readonly Refund[]): void {
    const charged = given.filter(one => !this.#resets.isForgotten(one))
    if (this.#closed || charged.length === 0) return
    this.#slots.giveBack(charged)
    const refunds = charged.map(one => ({ ...one, counter: this.#latest(one.counter) }))
    for (const charges of this.#isCluster ? bySlot(refunds, refund => refund) : [refunds]) {
      this.#ask({ what: 'giveBack', charges }).catch(() => this.#slots.lost(charges))
    }
  }

  /** Settles reservations, with the next batch. */
  async settle(settlements: readonly FleetSettlement[]): Promise<void> {
    const kept = settlements.filter(one => !this.#resets.isForgotten(one))
    if (kept.length === 0) return
    const latest = kept.map(one => {
      const counter = one.counter as RedisCounter
      return { ...one, counter: this.#latest(counter) }
    })
    const groups = this.#isCluster ? bySlot(latest, one => one) : [latest]
    await Promise.all(groups.map(charges => this.#ask({ what: 'settle', charges })))
  }

  /** Reports permits that this process has used in advance, and reserves others. */
  async lease(request: LeaseRequest<FleetCounter>): Promise<LeaseAnswer> {
    // by the limit that granted the permits, even if another one is in force by now
    const counter = request.counter as RedisCounter
    const holderKey = `${counter.ledgerKeyOf(request.key)}:${this.#holder}`
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
    // what was asked before is counted before the keys are listed
    await this.#ask({ what: 'look', charges: [redisCharge(counter)] })
    const found = new Set<string>()
    const [head = ''] = counter.ledgerKeyOf('').split('{*}')
    await scan(this.#masters?.() ?? [], `${escapePattern(head)}{*}`, names => {
      for (const name of names) {
        const key = callerOf(counter, name)
        if (key !== undefined && found.size < most) found.add(key)
      }
      return found.size < most && !this.#closed
    })
    return [...found]
  }

  /** Forgets what is counted for one key of a rule. */
  async reset(counter: RedisCounter, key: string): Promise<void> {
    const latest = this.#latest(counter)
    this.#slots.drop(counter, key)
    this.#resets.note(counter, key)
    const { now } = await this.#ask({ what: 'reset', charges: [{ counter: latest, key }] })
    this.#slots.dropped(counter, key, now)
  }

  watch(watcher: StoreWatcher): void {
    this.#watcher = watcher
  }

  /** Answers pending requests, and renews no more leases: the slots of this process are released soon. */
  close(): void {
    this.#closed = true
    this.#slots.close()
  }

  async #takeApart(groups: readonly (readonly RedisCharge[])[]): Promise<Answered> {
    const outcomes = await Promise.allSettled(groups.map(group => this.#ask({ what: 'take', charges: group })))
    const answers = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    if (answers.length === groups.length && answers.every(({ allowed }) => allowed)) return answers[0]!
    outcomes.forEach((outcome, i) => {
      if (outcome.status === 'fulfilled' && outcome.value.allowed) takeBack(this, groups[i]!, outcome.value.now)
    })
    const failure = outcomes.find(outcome => outcome.status === 'rejected')
    if (failure) throw failure.reason
    return { allowed: false, now: answers[0]!.now }
  }

  renew(): Promise<void> {
    return this.#slots.renewAll()
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
    if (request.what === 'take') this.#slots.requested(request.charges)
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
        if (request.what === 'take') this.#slots.lost(request.charges)
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
    if (request.what === 'take') this.#slots.answered(request.charges, allowed)
  }

  /** Asks again with what Redis did not know; nothing is counted until then. */
  async #exchange(requests: readonly ScriptRequest[]): Promise<{ now: number; allowed: readonly boolean[] }> {
    this.#underWay += requests.length
    try {
      let described: readonly string[] | undefined
      for (let tries = 0; tries < MOST_TRIES; tries++) {
        // a script remembers nothing
        const { usesScript } = this.#engineClient
        const { keys, numbers, rules } = encodeBatch(requests, this.#terms(usesScript))
        if (usesScript) described ??= rules.map(({ json }) => json)
        const era = this.#eras.of(keys[0]!)
        const sent = era.createdAt
        const [sentAtMs, askedAtMs] = [performance.now(), this.#steadyMs()]
        const now = this.#now ? String(this.#now()) : ''
        const args = [numbers, String(sent), now, String(this.#holder), ...(described ?? [])]
        const rest = [String(keys.length + 1), ...keys, era.key, ...args]
        const reply = readReply(requests, await this.#evaluate(rest), sent === 0)
        if (reply.kind === 'answers') {
          if (reply.createdAt !== undefined) era.createdAt = reply.createdAt
          this.#hear(reply.now, sentAtMs)
          noteWhatMatters(requests, era, askedAtMs)
          return reply
        }
        if (reply.kind === 'rules') described = reply.places.map(place => rules[place - 1]?.json ?? '')
        else this.#compareEra(era, sent, reply.createdAt)
      }
      throw new UnreadableReply('an answer', `${MOST_TRIES} times none`)
    } finally {
      // answers that come together would each make it seem less than it is
      this.#load = Math.max(this.#underWay + this.#pending.length, this.#load - 1)
      this.#underWay -= requests.length
    }
  }

  /** Throws if Redis has lost counts that still mattered; others may have expired. */
  #compareEra(era: Era, sent: number, createdAt: number): void {
    try {
      compareEra(era, sent, createdAt, this.#steadyMs())
    } catch (error) {
      this.#watcher?.countsLost()
      throw error
    }
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
    if (stepMs < 0) this.#slots.forgetResets()
    this.#watcher?.clockStepped(stepMs)
  }

  #terms(keepsLevels: boolean): BatchTerms {
    const lingerMs = this.#now ? TEST_LINGER_MS : LINGER_MS
    return { clock: this.#likelyClock, lingerMs, keepsLevels, forgetsLimits: this.#forgetsLimits }
  }

  #evaluate(rest: readonly string[]): Promise<unknown> {
    this.#engine ??= engineWith([...this.#luaAlgorithms.values()])
    return this.#engineClient.run(this.#engine, rest)
  }
}

/** Until when an answer of Redis matters at least: the engine ran after the request. */
function noteWhatMatters(requests: readonly ScriptRequest[], era: Era, askedAtMs: number): void {
  for (const request of requests) {
    if (request.what !== 'take' && request.what !== 'lease') continue
    for (const charge of request.charges) {
      const { counter } = charge
      const resets = 'answer' in charge ? charge.answer!.resets : charge.resets
      for (const reset of resets) {
        const untilMs = askedAtMs + Math.min(reset / 1000, counter.needsRelease ? LEASE_MS : reset / 1000)
        if (untilMs > era.mattersUntil) era.mattersUntil = untilMs
      }
    }
  }
}

/** Sends a command to several nodes, and fails if one of them does, once all have answered. */
function toAll(nodes: () => readonly SendCommand[]): SendCommand {
  return async command => {
    const outcomes = await Promise.allSettled(nodes().map(send => send(command)))
    const failure = outcomes.find(outcome => outcome.status === 'rejected')
    if (failure) throw failure.reason
  }
}

/** What counters have in common of which the last one counts: a limit of a rule that has several is no later version of another. */
function nameOf({ tag, mark, varies }: RedisCounter): string {
  return varies ? `${tag} ${mark}` : tag
}
