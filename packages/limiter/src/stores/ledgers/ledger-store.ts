import { randomBytes } from 'node:crypto'
import type { Algorithm } from '../../algorithms/algorithm.ts'
import { blocking } from '../../algorithms/block.ts'
import { reportFault } from '../../common/faults.ts'
import { DianaError } from '../../errors.ts'
import type { CatchUp } from '../catch-up.ts'
import { HeldSlots } from '../held-slots.ts'
import { leaseTermsOf } from '../leases/lease-terms.ts'
import { callerOf, type LedgerNames, ledgerKeys, tagOf } from '../ledger-keys.ts'
import { canContinue } from '../memory/limit-family.ts'
import { MOST_VERSIONS } from '../memory/rule-versions.ts'
import { OwnResets } from '../own-resets.ts'
import type {
  Answered,
  AnswerListener,
  FleetCharge,
  FleetCounter,
  FleetRefund,
  FleetRule,
  FleetSettlement,
  LeaseAnswer,
  LeaseRequest,
  SharedStore,
} from '../store.ts'
import type { StoredLedgers, TransactionalStore } from '../transactional-store.ts'
import { UsedVersions } from '../used-versions.ts'
import type { LedgerRule } from './entries.ts'
import { type ChargeAnswer, Ledger } from './ledger.ts'
import { readLedger } from './ledger-text.ts'
import { type LedgerLimit, Limits } from './limits.ts'
import { type Changed, transact } from './transact.ts'

export interface LedgerStoreOptions {
  /** All algorithms, to count limits of other processes. */
  readonly algorithms: readonly Algorithm[]
  /** What every key begins with; default: diana. */
  readonly prefix?: string | undefined
  /** Whole microseconds, if the store gives no time of its own; default: the clock of this machine. */
  readonly now?: (() => number) | undefined
  /** The name under which this process holds slots and permits, for tests; default: a random one. */
  readonly holder?: string | undefined
  /** Limits that are no longer used are forgotten at once, for tests; default: false. */
  readonly forgetsLimits?: boolean | undefined
}

/** The counts of one rule in ledgers. */
export interface LedgerCounter extends LedgerNames, LedgerRule {
  /** The name in its keys: counters with one tag share their counts. */
  readonly tag: string
  readonly mark: string
  since: number
  countsSince: number
}

interface Version {
  limit: LedgerLimit
  usedAt: number
}

/** Finds the ledger of a caller, to make a move of a rule. */
type LedgerOf = (counter: FleetCounter, key: string) => Ledger

/** A call or an amendment that waits for a transaction. */
interface Asked {
  readonly keys: readonly string[]
  /** Makes its moves; returns what reports the answer once the transaction is written. */
  readonly run: (ledgerOf: LedgerOf, now: number) => () => void
  readonly failed: (error: unknown) => void
}

/** The most transactions of one process at one time, and the most ledgers and calls of one of them; a call is never cut. */
const MOST_UNDER_WAY = 8
const MOST_KEYS = 128
const MOST_CALLS = 512
/** The most callers of a changed rule that are continued by its new limit before they come again. */
const MOST_CONTINUED = 100_000

/**
 * Counts in ledgers that a store of the user keeps, for the whole fleet. The calls of one turn of the event loop travel in one transaction,
 * and those that come for the same callers meanwhile in the next one, so that transactions of one process never wait for each other.
 */
export class LedgerStore implements SharedStore {
  readonly #store: TransactionalStore
  readonly #prefix: string
  readonly #now: () => number
  readonly #holder: string
  readonly #forgetsLimits: boolean
  readonly #limits: Limits
  readonly #slots = new HeldSlots<LedgerCounter>(({ counter, key, least, most }) => {
    return this.#amend(counter, key, ledger => ledger.renew(counter, least, most))
  })
  /** The counter made last for each tag: late refunds go by the limit in force. */
  readonly #counters = new Map<string, LedgerCounter>()
  readonly #versions = new Map<string, Version[]>()
  readonly #usedVersions = new UsedVersions()
  readonly #changed = new Set<LedgerCounter>()
  #continuing: Promise<void> = Promise.resolve()
  readonly #resets = new OwnResets()
  #pending: Asked[] = []
  #isFlushing = false
  readonly #busy = new Set<string>()
  #underWay = 0
  #isClosed = false
  /** How far the clock of the store was ahead when it was heard last, in microseconds. */
  #aheadUs = 0
  /** Lists the callers of a rule, if the store can list keys. */
  readonly keys?: (counter: FleetCounter, most: number) => Promise<string[]>

  constructor(store: TransactionalStore, options: LedgerStoreOptions) {
    const { algorithms, prefix = 'diana', now = () => Date.now() * 1000, holder, forgetsLimits = false } = options
    this.#store = store
    this.#prefix = prefix
    this.#now = now
    this.#holder = holder ?? randomBytes(6).toString('hex')
    this.#forgetsLimits = forgetsLimits
    this.#limits = new Limits([...algorithms, blocking])
    if (store.keys) this.keys = (counter, most) => this.#keys(counter as LedgerCounter, most)
  }

  createCounter(rule: FleetRule): LedgerCounter {
    const { meters, limitMeters } = rule
    const needsRelease = meters.some(meter => meter.held !== undefined)
    // calls under way are counted alike by all limits
    const others = needsRelease ? undefined : limitMeters
    const limit = this.#limits.of(rule, meters, others !== undefined)
    const tag = tagOf(rule)
    const stated = others?.map(meter => this.#limits.of({ ...rule, terms: undefined }, [meter], true))
    const versions = others ? [] : this.#versionsWith(tag, limit)
    const counter: LedgerCounter = {
      meters,
      needsRelease,
      lease: leaseTermsOf(rule),
      ledgerKeyOf: ledgerKeys(this.#prefix, tag),
      tag,
      mark: limit.mark,
      limit,
      stated: stated && [...new Map(stated.map(one => [one.mark, one])).values()],
      isEager: others !== undefined && !canContinue(others),
      since: -1,
      countsSince: -1,
      versions,
      forgetsLimits: this.#forgetsLimits,
    }
    const before = this.#counters.get(nameOf(counter))
    this.#counters.set(nameOf(counter), counter)
    if (before?.mark === limit.mark) Object.assign(counter, { since: before.since, countsSince: before.countsSince })
    else if (before && !others) this.#change(before, counter)
    return counter
  }

  /** The versions of a rule that this process has used, with one that is used from now on. */
  #versionsWith(tag: string, limit: LedgerLimit): Version[] {
    const now = this.#clock()
    const versions = this.#versions.get(tag) ?? []
    this.#versions.set(tag, versions)
    const known = versions.find(version => version.limit.mark === limit.mark)
    const last = versions.at(-1)
    if (last && last !== known) last.usedAt = now
    if (known) {
      versions.splice(versions.indexOf(known), 1)
      known.limit = limit
    }
    versions.push(known ?? { limit, usedAt: now })
    if (versions.length > MOST_VERSIONS) versions.shift()
    return this.#forgetsLimits ? [] : versions
  }

  /** The limit of a rule has changed: what callers have used is continued by it before it expires by the limit of before. */
  #change(before: LedgerCounter, counter: LedgerCounter): void {
    counter.since = this.#clock()
    counter.countsSince = this.#usedVersions.use(before, counter, this.#forgetsLimits)
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

  async #continueChanged(): Promise<void> {
    const counters = [...this.#changed].filter(({ needsRelease }) => !needsRelease)
    this.#changed.clear()
    for (const counter of counters) {
      const keys = (await this.keys?.(counter, MOST_CONTINUED)) ?? []
      await Promise.all(keys.map(key => this.#amend(counter, key, ledger => ledger.renew(counter, 0, 0))))
    }
  }

  /** The clock of the store, as far as this process knows it. */
  #clock(): number {
    return this.#now() + this.#aheadUs
  }

  /** Decides all charges at once: every one is counted, or, if one refuses, none. */
  take(charges: readonly FleetCharge[]): Promise<Answered> {
    return new Promise((answered, failed) => this.takeFor({ answered, failed }, charges))
  }

  takeFor(listener: AnswerListener, charges: readonly FleetCharge[]): void {
    this.#slots.requested(charges as readonly (FleetCharge & { counter: LedgerCounter })[])
    this.#decide('take', charges, listener)
  }

  /** Decides all charges without counting any. */
  look(charges: readonly FleetCharge[]): Promise<Answered> {
    return new Promise((answered, failed) => this.#decide('look', charges, { answered, failed }))
  }

  /** Takes charges back without waiting; if the refund is lost, the counts stay on the safe side. */
  giveBack(given: readonly FleetRefund[]): void {
    const refunds = given.filter(one => !this.#resets.isForgotten(one))
    if (this.#isClosed || refunds.length === 0) return
    this.#slots.giveBack(refunds)
    for (const refund of refunds) {
      const counter = this.#latest(refund.counter)
      this.#amend(counter, refund.key, ledger => ledger.refund({ ...refund, counter })).catch(() => {
        this.#slots.lost([{ counter, key: refund.key }])
      })
    }
  }

  /** Settles reservations, each once. */
  async settle(settlements: readonly FleetSettlement[]): Promise<void> {
    const kept = settlements.filter(one => !this.#resets.isForgotten(one))
    const all = kept.map(one => this.#amend(this.#latest(one.counter), one.key, ledger => ledger.settle(one)))
    await Promise.all(all)
  }

  /** Reports permits that this process has used in advance, and leases others. */
  lease(request: LeaseRequest<FleetCounter>): Promise<LeaseAnswer> {
    // by the limit that granted the permits, even if another one is in force by now
    return this.#amend(request.counter as LedgerCounter, request.key, ledger => ledger.lease(request))
  }

  /** Counts what the store has missed of one key, and writes down what does not fit. */
  async catchUp(missed: CatchUp<FleetCounter>): Promise<void> {
    const unfit = await this.#amend(missed.counter as LedgerCounter, missed.key, ledger => ledger.catchUp(missed))
    missed.unfit.splice(0, missed.unfit.length, ...unfit)
  }

  /** Forgets what is counted for one key of a rule. */
  async reset(counter: FleetCounter, key: string): Promise<void> {
    const latest = this.#latest(counter)
    this.#slots.drop(latest, key)
    this.#resets.note(latest, key)
    const now = await this.#amend(latest, key, (ledger, at) => {
      ledger.reset(latest)
      return at
    })
    this.#slots.dropped(latest, key, now)
  }

  /** Renews the slots of this process. */
  renew(): Promise<void> {
    return this.#slots.renewAll()
  }

  /** Renews nothing more: the slots of this process are released soon. */
  close(): void {
    this.#isClosed = true
    this.#slots.close()
  }

  #latest(counter: FleetCounter): LedgerCounter {
    const known = counter as LedgerCounter
    return this.#counters.get(nameOf(known)) ?? known
  }

  async #keys(counter: LedgerCounter, most: number): Promise<string[]> {
    const empty = counter.ledgerKeyOf('')
    const prefix = empty.slice(0, empty.lastIndexOf('{') + 1)
    await this.#written(prefix)
    const names = await this.#store.keys!(prefix, most)
    return names.flatMap(name => callerOf(counter, name) ?? []).slice(0, most)
  }

  /** Resolves when what was asked of a rule before is written. */
  async #written(prefix: string): Promise<void> {
    const all = [...this.#busy, ...this.#pending.flatMap(asked => asked.keys)]
    const keys = [...new Set(all)].filter(key => key.startsWith(prefix))
    if (keys.length > 0) await new Promise<void>((done, failed) => this.#ask({ keys, run: () => done, failed }))
  }

  #decide(what: 'take' | 'look', charges: readonly FleetCharge[], listener: AnswerListener): void {
    const slotted = charges as readonly (FleetCharge & { counter: LedgerCounter })[]
    this.#ask({
      keys: slotted.map(({ counter, key }) => counter.ledgerKeyOf(key)),
      run: (ledgerOf, now) => {
        const { allowed, answers } = decide(what, charges, ledgerOf)
        return () => {
          charges.forEach((charge, i) => void write(answers[i]!, charge))
          if (what === 'take') this.#slots.answered(slotted, allowed)
          listener.answered({ allowed, now })
        }
      },
      failed: error => {
        if (what === 'take') this.#slots.answered(slotted, false)
        if (what === 'take') this.#slots.lost(slotted)
        listener.failed(error)
      },
    })
  }

  /** Makes a move of one ledger; resolves to what it returned, once it is written. */
  #amend<Result>(counter: LedgerCounter, key: string, move: (ledger: Ledger, now: number) => Result): Promise<Result> {
    return new Promise((resolve, failed) => {
      const run: Asked['run'] = (ledgerOf, now) => {
        const result = move(ledgerOf(counter, key), now)
        return () => resolve(result)
      }
      this.#ask({ keys: [counter.ledgerKeyOf(key)], run, failed })
    })
  }

  #ask(asked: Asked): void {
    if (this.#isClosed) {
      asked.failed(new DianaError('CLOSED', 'the store is closed'))
      return
    }
    this.#pending.push(asked)
    if (this.#isFlushing) return
    this.#isFlushing = true
    if (this.#underWay === 0) process.nextTick(() => this.#flush())
    else setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#isFlushing = false
    while (this.#underWay < MOST_UNDER_WAY) {
      const batch = this.#nextBatch()
      if (batch.length === 0) return
      void this.#run(batch)
    }
  }

  /** Takes out the next calls whose ledgers no transaction has; calls for one caller stay in their order. */
  #nextBatch(): Asked[] {
    const [batch, rest]: [Asked[], Asked[]] = [[], []]
    const keys = new Set<string>()
    const blocked = new Set(this.#busy)
    for (const asked of this.#pending) {
      const more = asked.keys.filter(key => !keys.has(key)).length
      const isFull = batch.length > 0 && (batch.length >= MOST_CALLS || keys.size + more > MOST_KEYS)
      const isBlocked = asked.keys.some(key => blocked.has(key))
      for (const key of asked.keys) (isFull || isBlocked ? blocked : keys).add(key)
      if (isFull || isBlocked) rest.push(asked)
      else batch.push(asked)
    }
    this.#pending = rest
    return batch
  }

  async #run(batch: readonly Asked[]): Promise<void> {
    const keys = [...new Set(batch.flatMap(asked => asked.keys))].sort()
    for (const key of keys) this.#busy.add(key)
    this.#underWay++
    try {
      const outcomes = await transact(this.#store, keys, this.#now, (ledgers, now) => this.#serve(batch, ledgers, now))
      for (const outcome of outcomes) deliver(outcome)
    } catch (error) {
      for (const { failed } of batch) deliver(() => failed(error))
    } finally {
      for (const key of keys) this.#busy.delete(key)
      this.#underWay--
      if (this.#pending.length > 0) this.#flush()
    }
  }

  /** Makes the moves of a batch. One that throws, as a meter of the user may, fails alone: the others are made without it. */
  #serve(
    batch: readonly Asked[],
    stored: StoredLedgers,
    now: number,
  ): { readonly changed: readonly Changed[]; readonly result: readonly (() => void)[] } {
    this.#aheadUs = now - this.#now()
    const failures = new Map<Asked, () => void>()
    for (;;) {
      const ledgers = new Map<string, Ledger>()
      const ledgerOf: LedgerOf = (counter, key) => this.#ledgerIn(ledgers, stored, counter as LedgerCounter, key, now)
      let failing: Asked | undefined
      try {
        const result = batch.map(asked => {
          failing = asked
          return failures.get(asked) ?? asked.run(ledgerOf, now)
        })
        failing = undefined
        return { changed: changesIn(ledgers, now), result }
      } catch (error) {
        const asked = failing
        if (asked === undefined) throw error
        failures.set(asked, () => asked.failed(error))
      }
    }
  }

  #ledgerIn(
    ledgers: Map<string, Ledger>,
    stored: StoredLedgers,
    counter: LedgerCounter,
    key: string,
    now: number,
  ): Ledger {
    const name = counter.ledgerKeyOf(key)
    const known = ledgers.get(name)
    const ledger =
      known ?? new Ledger(readLedger(stored.get(name), counter, this.#limits), counter, { now, holder: this.#holder })
    if (!known) ledgers.set(name, ledger)
    ledger.rule = counter
    return ledger
  }
}

/** Decides a call by all its charges: all of them are counted, or, if one refuses, none. */
function decide(
  what: 'take' | 'look',
  charges: readonly FleetCharge[],
  ledgerOf: LedgerOf,
): { readonly allowed: boolean; readonly answers: readonly ChargeAnswer[] } {
  const answers = charges.map(charge => ledgerOf(charge.counter, charge.key).measure(charge))
  const allowed = answers.every(({ fits }, i) => fits || !charges[i]!.enforced)
  charges.forEach((charge, i) => {
    const answer = answers[i]!
    const ledger = ledgerOf(charge.counter, charge.key)
    const isCounted = what === 'take' && charge.cost > 0
    if (isCounted && allowed && answer.fits) ledger.take(charge, answer.wait)
    else if (isCounted) ledger.begin()
    ledger.report(answer)
  })
  return { allowed, answers }
}

function changesIn(ledgers: ReadonlyMap<string, Ledger>, now: number): Changed[] {
  return [...ledgers].flatMap(([key, ledger]) => {
    const { saved } = ledger
    return saved ? [{ key, text: saved.text, lastsUs: saved.until - now }] : []
  })
}

function write(answer: ChargeAnswer, charge: FleetCharge): void {
  charge.wait = answer.wait
  charge.fits = answer.fits
  for (const part of ['delays', 'remaining', 'resets'] as const) {
    charge[part].splice(0, charge[part].length, ...answer[part])
  }
}

function deliver(outcome: () => void): void {
  try {
    outcome()
  } catch (error) {
    reportFault('answers of the store', error)
  }
}

/** What counters have in common of which the last one counts: a limit of a rule that has several is no later version of another. */
function nameOf({ tag, mark, stated }: LedgerCounter): string {
  return stated ? `${tag} ${mark}` : tag
}
