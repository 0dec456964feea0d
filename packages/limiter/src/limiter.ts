import type { EventEmitter } from 'node:events'
import { type Call, lazy } from './call.ts'
import { warnOnce } from './common/warn-once.ts'
import {
  type BlockedCaller,
  blockBy,
  blockedBy,
  blockLeftMs,
  callOf,
  isCall,
  keyOf,
  unblockBy,
  type Who,
} from './decision/blocklist.ts'
import {
  type CreditContext,
  creditsOf,
  grantCredit,
  lookOrPay,
  rewardUsed,
  setUsed,
  takeOrPay,
} from './decision/caller-permits.ts'
import { type CheckOptions, costOf, type NamedRules } from './decision/check-options.ts'
import type { Decider } from './decision/decider.ts'
import { busiestEstimate, Explanation, explainBlock, explainList, explainRules } from './decision/explain.ts'
import type { JointCall } from './decision/joint-decision.ts'
import type { PendingVerdict } from './decision/pending-verdict.ts'
import { holdUsOf, type Reservation, type ReserveOptions, VerdictReservation } from './decision/settlement.ts'
import type { Engine } from './engine/engine.ts'
import { ENGINE } from './engine/engine-of.ts'
import { DianaError } from './errors.ts'
import type { JobQueue } from './jobs/job-queue.ts'
import type { LimiterEvents, Status } from './limiter-status.ts'
import { RuleJobs } from './rule-jobs.ts'
import type { Rule } from './rules/rule.ts'
import type { RuleOptions } from './rules/schema/options.ts'
import { ruleToInput } from './rules/to-input.ts'
import type { Verdict } from './verdict.ts'

/** One call in this number is timed; a power of two. */
const TIMED_ONE_OF = 128

type Pending = ReturnType<Decider['take']>

/** Decides calls by its rules. Make one with `createLimiter`, and close it. */
export class Limiter<Id extends string = string> {
  readonly #engine: Engine
  #jobs: RuleJobs | undefined
  #decided = 0

  /** @internal Applications call `createLimiter`. */
  constructor(engine: Engine) {
    this.#engine = engine
    Object.defineProperty(this, ENGINE, { value: engine })
  }

  /** Returns the events of the rules and the stores; see `LimiterEvents`. */
  get events(): EventEmitter<LimiterEvents> {
    return this.#engine.events
  }

  /** The rules in force as they were validated, each with its origin. */
  get rules(): readonly Rule[] {
    return this.#engine.live.document.rules
  }

  /** Decides a call and counts it, after any wait that its rules ask for. */
  check(call: Call, options?: CheckOptions): Promise<Verdict> {
    try {
      // a promise stays the same one; an async function would wait for it, three microtasks later
      return Promise.resolve(this.decide(call, options))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /**
   * As `check`, without a promise where none is needed: a call whose rules are all counted in this process and let it pass
   * or refuse it at once is decided at once.
   */
  decide(call: Call, options?: CheckOptions): Verdict | Promise<Verdict> {
    this.#assertUsable(call)
    const cost = costOf(call, options)
    return this.#engine.counters.observers.length === 0
      ? this.#decide(call, cost, options)
      : this.#decideObserved(call, cost, options)
  }

  /**
   * Decides several calls at once, such as the parts of one request that are limited apart: all of them are counted, or, if one is
   * refused, none. A rule that several of them meet with the same key is charged once, by the highest cost; a call of
   * cost 0 is only asked whether one of cost 1 would pass. No call waits, whatever its rules say.
   */
  decideTogether(calls: readonly JointCall[]): readonly Verdict[] | Promise<readonly Verdict[]> {
    for (const { call } of calls) this.#assertUsable(call)
    for (const { call, cost } of calls) costOf(call, { cost })
    const { counters, decider, observers } = this.#engine
    for (const observer of counters.observers) {
      for (const { call, cost } of calls) if (cost > 0) observer.onCall?.(call, cost)
    }
    const verdicts = decider.takeTogether(calls, this.#engine.now())
    if (counters.observers.length === 0) return verdicts
    const report = (all: readonly Verdict[]): readonly Verdict[] =>
      all.map((one, index) => observers.report(one, calls[index]!.call))
    return verdicts instanceof Promise ? verdicts.then(report) : report(verdicts)
  }

  /**
   * Charges in advance what a call may cost, by all its rules or by none, to be settled at what was really used. What is neither
   * settled nor released is released after `hold`, also if this process has died.
   */
  async reserve(call: Call, options: ReserveOptions = {}): Promise<Reservation> {
    const reserving = { ...options, holdUs: holdUsOf(options) }
    return new VerdictReservation((await this.decide(call, reserving)) as PendingVerdict)
  }

  /** Decides a call without counting it. A caller without a call is decided by the one rule that `options` names. */
  async peek(who: Who, options?: Omit<CheckOptions, 'signal'>): Promise<Verdict> {
    if (!isCall(who)) return this.#peekByRule(who, options)
    const call = who
    this.#assertUsable(call)
    const cost = costOf(call, options)
    return this.#engine.decider.hasCredit
      ? lookOrPay(call, cost, options, this.#creditContext())
      : this.#engine.decider.look(call, cost, this.#engine.now(), options)
  }

  /**
   * Explains which rules match a call, under which key, with which numbers, and whether its caller is on a list or blocked; counts
   * nothing.
   */
  async explain(call: Call, options?: NamedRules): Promise<Explanation> {
    const { decisions } = await this.peek(call, options)
    const met = this.#engine.decider.meets(call, options)
    const lefts = await Promise.all(met.map(state => blockLeftMs(state, call, this.#engine)))
    const blocks = met.flatMap(({ rule }, i) => (lefts[i]! > 0 ? [explainBlock(rule.id, lefts[i]!)] : []))
    const lists = this.#engine.decider.lists(call, options).map(explainList)
    const { shared, credits: store } = this.#engine
    const credits = await creditsOf(call, met, store)
    const explained = explainRules(call, met, decisions, { shared, nowUs: this.#engine.now(), credits })
    return new Explanation(explained, [...lists, ...blocks])
  }

  status(): Status {
    const { decider, live, shared, store, guard, now } = this.#engine
    return {
      rules: decider.rules.map(state => {
        const { rule, waiting, counter } = state
        const leased = counter && shared.leasedOf(counter)
        const estimate = busiestEstimate(state, now())
        return {
          id: rule.id,
          algorithm: rule.algorithm,
          origin: rule.origin,
          waiting,
          ...(leased === undefined ? {} : { leased }),
          ...(estimate === undefined ? {} : { estimate }),
        }
      }),
      sources: live.sources(),
      store: shared.fleetStatus,
      counting: shared.machineStatus,
      ...(guard === undefined ? {} : { overload: guard.status }),
      keys: store.keys,
      maxKeys: store.maxKeys,
      overflowing: store.overflowing(now()),
    }
  }

  /**
   * Decides by one rule for a caller, without a request, and counts: `consume('login', 'ann')`. The rule's `match` is not asked. What
   * the verdict offers afterwards (settle, refund, end) it offers here too.
   */
  async consume(rule: Id, who: Who, options: Pick<CheckOptions, 'cost' | 'signal'> = {}): Promise<Verdict> {
    this.#engine.assertOpen()
    return this.decide(callOf(this.#engine.ruleNamed(rule), who), { ...options, rule, only: true })
  }

  /** Returns what `consume` would answer, without counting. */
  async get(rule: Id, who: Who): Promise<Verdict> {
    this.#engine.assertOpen()
    return this.peek(callOf(this.#engine.ruleNamed(rule), who), { rule, only: true })
  }

  /** Forgets what one rule has counted for a caller. */
  async reset(rule: Id, who: Who): Promise<void> {
    const state = this.#engine.ruleNamed(rule)
    const key = keyOf(state, who)
    state.table.reset(key)
    if (state.counter) await this.#engine.shared.reset(state.counter, key)
  }

  /** Sets how much of a rule's limit a caller has used, as of now; returns how much is left. More than the limit is all of it. */
  async set(rule: Id, who: Who, used: number): Promise<number> {
    this.#engine.assertOpen()
    return await setUsed(this.#engine.ruleNamed(rule), who, used, this.#engine)
  }

  /** Refunds permits that a rule has counted for a caller, such as after a correct login; returns how much is left. */
  async reward(rule: Id, who: Who, permits = 1): Promise<number> {
    this.#engine.assertOpen()
    return await rewardUsed(this.#engine.ruleNamed(rule), who, permits, this.#engine)
  }

  /**
   * Gives a caller of a rule with `credit: true` permits beside the limit, in all processes that share the store: calls that the limit
   * refuses use them up. Returns how many the caller has then.
   */
  async grant(rule: Id, who: Who, permits: number): Promise<number> {
    this.#engine.assertOpen()
    const state = this.#engine.ruleNamed(rule)
    return await grantCredit(state, keyOf(state, who), permits, this.#engine.credits)
  }

  /**
   * Refuses a caller by one rule for a time: the rule's own `block` unless given, milliseconds, a duration such as `10m`, or `forever`.
   * It holds for all processes if the rule is counted in Redis.
   */
  async block(rule: Id, who: Who, time?: string | number): Promise<void> {
    await blockBy(this.#engine.ruleNamed(rule), who, time, this.#engine)
  }

  /** Ends a block; what the rule has counted for the caller is forgotten, or it would block them at once. */
  async unblock(rule: Id, who: Who): Promise<void> {
    await unblockBy(this.#engine.ruleNamed(rule), who, this.#engine.shared)
  }

  /** Returns the callers that rules block now, by one rule or by all. */
  async blocks(rule?: Id): Promise<BlockedCaller[]> {
    const { decider } = this.#engine
    const rules = rule === undefined ? decider.rules : [this.#engine.ruleNamed(rule)]
    return (await Promise.all(rules.map(state => blockedBy(state, this.#engine)))).flat()
  }

  /**
   * Adds a rule of the program's own, with the options of the rule file. A rule with the same id in the rule file or the
   * config center replaces it, so that operators decide. The same options again change nothing.
   */
  addRule(options: RuleOptions): void {
    this.#engine.assertOpen()
    const { given } = this.#engine.options
    this.#engine.live.add(options, given ? ruleToInput(options, given) : options)
  }

  /**
   * Removes a rule that `addRule`, a route's filter or an annotation has added; false if there is
   * none of this id. Rules of a rule file, of a config center or of createLimiter's options are changed there.
   */
  removeRule(id: string): boolean {
    this.#engine.assertOpen()
    return this.#engine.live.remove(id)
  }

  /**
   * Returns the jobs that wait for a rule, of all callers together or of one: `jobs('mail').schedule(() => send(letter))`. None is
   * refused because there are many of them; each begins when the rule lets it pass.
   */
  jobs(rule: Id, who: Who = []): JobQueue {
    this.#engine.assertOpen()
    this.#jobs ??= new RuleJobs(this.#engine)
    return this.#jobs.queueOf(rule, who)
  }

  /** Ends connections, timers and threads; calls are refused with CLOSED from now on. */
  async close(): Promise<void> {
    await this.#engine.close()
  }

  #decide(call: Call, cost: number, options?: CheckOptions): Verdict | Promise<Verdict> {
    const { decider, waitQueue } = this.#engine
    const now = this.#engine.now()
    if (cost === 0) return decider.look(call, 0, now, options)
    // calls whose moment has come pass before this one, although their timer is late
    if (waitQueue.scheduled.dueAt <= now) waitQueue.scheduled.passDue(now)
    // a request that several filters decide is offered once
    if (options?.after === undefined && this.#engine.guard?.refuses(call, now)) {
      return decider.shed(call, now, Number.POSITIVE_INFINITY)
    }
    if (waitQueue.slots.size > 0) {
      const ahead = waitQueue.firstQueue(call, options)
      if (ahead) return waitQueue.enqueue(call, cost, ahead, options)
    }
    const isTimed = (++this.#decided & (TIMED_ONE_OF - 1)) === 0
    if (decider.hasCredit && !isTimed) {
      const pending = takeOrPay(call, cost, options, this.#creditContext())
      return this.#hold(pending, call, cost, now, options)
    }
    const pending = isTimed ? this.#takeTimed(call, cost, now, options) : decider.take(call, cost, now, options)
    // to ask what class it is of would take longer
    if ('isFinal' in pending && pending.isFinal) return pending
    return this.#hold(pending, call, cost, now, options)
  }

  #creditContext(): CreditContext {
    const { credits, now } = this.#engine
    return { credits, now, decider: () => this.#engine.decider }
  }

  #hold(pending: Pending, call: Call, cost: number, now: number, options?: CheckOptions): Verdict | Promise<Verdict> {
    const { waitQueue } = this.#engine
    return pending instanceof Promise
      ? pending.then(one => waitQueue.hold(one, call, cost, now, options))
      : waitQueue.hold(pending, call, cost, now, options)
  }

  #takeTimed(call: Call, cost: number, now: number, options?: CheckOptions): Pending {
    const { decider, observers } = this.#engine
    const startedMs = performance.now()
    const pending = decider.hasCredit
      ? takeOrPay(call, cost, options, this.#creditContext())
      : decider.take(call, cost, now, options)
    if (!(pending instanceof Promise)) observers.time('memory', startedMs)
    else pending.then(() => observers.time('redis', startedMs)).catch(() => {})
    return pending
  }

  /** Observers see a request once, though several filters decide it, and its refusal by any of them. */
  #decideObserved(call: Call, cost: number, options?: CheckOptions): Verdict | Promise<Verdict> {
    const { counters, observers } = this.#engine
    const isFirst = options?.after === undefined
    if (cost > 0 && isFirst) for (const observer of counters.observers) observer.onCall?.(call, cost)
    const verdict = this.#decide(call, cost, options)
    const report = (one: Verdict): Verdict => (isFirst || !one.allowed ? observers.report(one, call) : one)
    return verdict instanceof Promise ? verdict.then(report) : report(verdict)
  }

  async #peekByRule(who: Exclude<Who, Call>, options: Omit<CheckOptions, 'signal'> = {}): Promise<Verdict> {
    if (typeof options.rule !== 'string') {
      throw new DianaError(
        'BAD_CALL',
        "a caller without a call is peeked at by one rule: peek('ann', { rule: 'login' })",
      )
    }
    return this.peek(callOf(this.#engine.ruleNamed(options.rule), who), { ...options, only: true })
  }

  #assertUsable(call: Call & { readonly [lazy]?: true }): void {
    if (this.#engine.isClosed) this.#engine.assertOpen()
    if (call?.[lazy]) return
    if (typeof call?.path !== 'string' || typeof call.method !== 'string') {
      throw new DianaError('BAD_CALL', 'a call needs a method and a path, such as { method: "GET", path: "/orders" }')
    }
    if (call.headers !== undefined) assertHeaders(call.headers)
  }
}

/** The number of calls that are checked for capital letters: enough to find the mistake, few enough to cost nothing. */
const MOST_INSPECTED = 100

let inspected = 0

/** Throws for headers that cannot be read by name, such as those of a Request; warns once of names that no rule reads. */
function assertHeaders(headers: NonNullable<Call['headers']>): void {
  if (typeof headers !== 'object' || Symbol.iterator in headers) {
    const remedy = 'pass Object.fromEntries(request.headers)'
    throw new DianaError(
      'BAD_CALL',
      `headers must be a plain object of names in lower case, as Node has them: ${remedy}`,
    )
  }
  if (inspected >= MOST_INSPECTED) return
  inspected++
  const name = Object.keys(headers).find(one => one !== one.toLowerCase())
  if (name !== undefined) warnOnce('DIANA_HEADER_CASE', name)
}
