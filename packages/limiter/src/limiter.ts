import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { Documents } from './admin/documents.ts'
import { type Preview, preview } from './admin/preview.ts'
import { type Trial, Trials } from './admin/trials.ts'
import type { Algorithm } from './algorithms/algorithm.ts'
import { type Call, lazy } from './call.ts'
import { type Clock, inMicroseconds, steadyClock } from './common/clock.ts'
import { warnOfEach, warnOnce } from './common/warn-once.ts'
import {
  type BlockedCaller,
  blockBy,
  blockedBy,
  blockLeftMs,
  keyOf,
  unblockBy,
  type Who,
} from './decision/blocklist.ts'
import { type CheckOptions, costOf } from './decision/check-options.ts'
import { Decider } from './decision/decider.ts'
import { Explanation, explainBlock, explainList, explainRules } from './decision/explain.ts'
import { explainMisses, type RuleMiss } from './decision/explain-misses.ts'
import { giveBack, type NamedRules, type RuleState } from './decision/pending-verdict.ts'
import { bindCounters } from './decision/rule-states.ts'
import type { Dimension } from './dimensions/dimension.ts'
import type { GivenFunctions } from './dimensions/reading/given-functions.ts'
import type { CompositeStore } from './distributed/composite-store.ts'
import { createSharedStores, type SharedStoresOptions } from './distributed/create-shared-stores.ts'
import { DianaError } from './errors.ts'
import { assertHeaders } from './http/assert-headers.ts'
import { type AddressReader, createAddressReader, type ForwardedBy } from './http/ip-address.ts'
import type { LimiterEvents, Status } from './limiter-status.ts'
import { WaitQueue } from './queue/wait-queue.ts'
import { DocumentThread } from './reload/document-thread.ts'
import { LiveRules, type LiveRulesOptions } from './reload/live-rules.ts'
import type { SourceStatus } from './reload/source-state.ts'
import { type CompiledDocument, compileDocument } from './rules/compile.ts'
import type { Rule, RuleDocument } from './rules/rule.ts'
import type { RuleOptions } from './rules/schema/options.ts'
import { ruleToInput } from './rules/to-input.ts'
import { createWatch } from './stats/counters.ts'
import type { Observer } from './stats/observer.ts'
import { Observers } from './stats/observers.ts'
import type { RecordedCall } from './stats/recorder.ts'
import type { Stats } from './stats/stats.ts'
import type { StoreStatus } from './stores/failover/store-health.ts'
import { MemoryStore } from './stores/memory/memory-store.ts'
import type { MinuteOfTraffic, RedisStatistics } from './stores/redis/statistics.ts'
import type { Verdict } from './verdict.ts'

export interface LimiterParts extends LiveRulesOptions, SharedStoresOptions {
  readonly statistics?: RedisStatistics | undefined
  readonly disconnect?: (() => void) | undefined
  readonly algorithms: readonly Algorithm[]
  readonly dimensions: readonly Dimension[]
  readonly clock?: Clock | undefined
  readonly maxKeys?: number | undefined
  /** Functions in place of words. */
  readonly given?: GivenFunctions | undefined
}

/** Reads a section's new value, throws where it cannot be obeyed, and returns what puts it in force, which may never be called. */
export type SectionFollower = (value: unknown) => () => void

const SWEEP_EVERY_MS = 200
const SWEEP_KEYS = 2048
const CLOSING_MS = 1000
const SOURCE_WARNINGS = {
  rejected: 'DIANA_RULES_REJECTED',
  failure: 'DIANA_SOURCE_FAILED',
  missing: 'DIANA_RULES_MISSING',
} as const
/** So many rules are compiled between two calls, where nothing hurries. */
const COMPILE_RULES = 250
/** One call in so many is timed; a power of two. */
const TIMED_ONE_OF = 32

/** Judges calls by its rules. Make one with `createLimiter`, and close it. */
export class Limiter {
  readonly events: EventEmitter<LimiterEvents> = new EventEmitter()
  readonly #parts: LimiterParts
  readonly #now: () => number
  readonly #store: MemoryStore
  readonly #shared: CompositeStore
  readonly #live: LiveRules
  readonly #waitQueue: WaitQueue
  readonly #followers = new Map<string, SectionFollower>()
  readonly #sweeper: NodeJS.Timeout
  readonly #watch = createWatch()
  readonly #observers: Observers
  readonly #trials = new Trials()
  /** The documents that the rules come from: to read, to check, to write. */
  readonly documents: Documents
  #decided = 0
  /** The caller's address, given the socket's peer and the header that `forwardedBy` names. */
  readonly addressOf: AddressReader = (peer, forwardedFor) => this.#addressOf(peer, forwardedFor)
  #document: RuleDocument
  #judge: Decider
  #addressOf: AddressReader
  #closed = false

  constructor(parts: LimiterParts) {
    this.#parts = parts
    this.#now = inMicroseconds(parts.clock ?? steadyClock)
    this.#store = new MemoryStore({ maxKeys: parts.maxKeys })
    this.#shared = createSharedStores(parts, parts.document, {
      memory: this.#store,
      now: this.#now,
      rules: () => this.#judge.rules,
      onFleet: status => this.#tell(status),
      onMachine: status => this.events.emit('counting', status),
    })
    this.#waitQueue = new WaitQueue({ now: this.#now, judge: () => this.#judge, watch: this.#watch })
    this.#observers = new Observers(this.#watch, () => this.#now() / 1000)
    const thread = new DocumentThread(parts.vocabulary)
    this.#live = new LiveRules(
      { ...parts, thread },
      {
        onRules: document => this.#apply(document),
        onTaken: source => this.events.emit('rules', source),
        onRejected: (source, mistakes) => {
          if (!this.events.emit('rejected', source, mistakes)) this.#warnLater('rejected', source)
        },
        onMissing: source => {
          if (!this.events.emit('missing', source)) this.#warnLater('missing', source)
        },
        onFailure: source => {
          if (!this.events.emit('failure', source)) this.#warnLater('failure', source)
        },
      },
    )
    this.documents = new Documents(this.#live, parts.vocabulary, thread, document => this.#assertObeyable(document))
    this.#document = this.#live.document
    this.#judge = this.#judgeBy(this.#document, [])
    this.#addressOf = createAddressReader(this.#document.trustProxy, this.#document.forwardedBy)
    this.#sweeper = setInterval(() => this.#store.sweep(SWEEP_KEYS, this.#now()), SWEEP_EVERY_MS).unref()
  }

  /** The header in which trusted proxies name the caller: what `addressOf` wants to be given. */
  get forwardedBy(): ForwardedBy {
    return this.#document.forwardedBy
  }

  /** Follows the sources of the rules; resolves when the limiter may begin. */
  async start(): Promise<void> {
    await Promise.all([this.#live.start(), this.#shared.start()])
  }

  /** The proxies that are trusted now: how many, or their networks. */
  get trustProxy(): number | readonly string[] {
    return this.#document.trustProxy
  }

  /** Judges a call and counts it; a promise only where the call has to wait, or is counted elsewhere too. */
  decide(call: Call, options?: CheckOptions): Verdict | Promise<Verdict> {
    const cost = costOf(call, options)
    this.#assertUsable(call, cost)
    if (this.#watch.observers.length === 0) return this.#decide(call, cost, options)
    // observers are told of a request once, though several filters judge it; of its refusal by any of them
    const isFirst = options?.after === undefined
    if (cost > 0 && isFirst) for (const observer of this.#watch.observers) observer.onCall?.(call, cost)
    const verdict = this.#decide(call, cost, options)
    const tell = (one: Verdict): Verdict => (isFirst || !one.allowed ? this.#observers.tell(one) : one)
    return verdict instanceof Promise ? verdict.then(tell) : tell(verdict)
  }

  #decide(call: Call, cost: number, options?: CheckOptions): Verdict | Promise<Verdict> {
    const now = this.#now()
    if (cost === 0) return this.#judge.look(call, 0, now, options)
    const ahead = this.#waitQueue.firstLine(call, options)
    if (ahead) return this.#waitQueue.enqueue(call, cost, ahead, options)
    const startedMs = (++this.#decided & (TIMED_ONE_OF - 1)) === 0 ? performance.now() : undefined
    const pending = this.#judge.take(call, cost, now, options)
    if (pending instanceof Promise) {
      return pending.then(one => {
        if (startedMs !== undefined) this.#observers.time('redis', startedMs)
        return this.#waitQueue.hold(one, call, cost, now, options)
      })
    }
    if (startedMs !== undefined) this.#observers.time('memory', startedMs)
    return this.#waitQueue.hold(pending, call, cost, now, options)
  }

  /** Judges a call and counts it, after whatever wait its rules ask for. */
  async check(call: Call, options?: CheckOptions): Promise<Verdict> {
    return this.decide(call, options)
  }

  /** Judges a call without counting it. */
  async peek(call: Call, options?: Omit<CheckOptions, 'signal'>): Promise<Verdict> {
    const cost = costOf(call, options)
    this.#assertUsable(call, cost)
    return this.#judge.look(call, cost, this.#now(), options)
  }

  /**
   * Which rules a call meets, under which key, with which numbers, and whether its caller is on a list or blocked; counts
   * nothing.
   */
  async explain(call: Call, options?: NamedRules): Promise<Explanation> {
    const { decisions } = await this.peek(call, options)
    const met = this.#judge.meets(call, options)
    const keeping = { store: this.#store, shared: this.#shared, now: this.#now }
    const lefts = await Promise.all(met.map(counted => blockLeftMs(counted, call, keeping)))
    const blocks = met.flatMap(({ rule }, i) => (lefts[i]! > 0 ? [explainBlock(rule.id, lefts[i]!)] : []))
    const lists = this.#judge.lists(call, options).map(explainList)
    return new Explanation(explainRules(call, met, decisions), [...lists, ...blocks])
  }

  /** The rules that a call is not judged by, each with the reason. */
  explainMisses(call: Call, options?: NamedRules): RuleMiss[] {
    const met = new Set(this.#judge.meets(call, options).map(({ rule }) => rule.id))
    return explainMisses(
      call,
      this.rules.filter(({ id }) => !met.has(id)),
    )
  }

  status(): Status {
    return {
      rules: this.#judge.rules.map(({ rule, waiting }) => {
        return { id: rule.id, algorithm: rule.algorithm, origin: rule.origin, waiting }
      }),
      sources: this.#live.sources(),
      store: this.#shared.fleetStatus,
      counting: this.#shared.machineStatus,
      keys: this.#store.keys,
      maxKeys: this.#store.maxKeys,
      overflowing: this.#store.overflowing(this.#now()),
    }
  }

  /** What became of all calls since the start, and of those that each rule met; this process's own. */
  figures(): Stats {
    return this.#observers.figures(this.#judge.rules)
  }

  /** How full the fullest key of each rule was since this was last asked, from 0 to 1; the first time, nothing. */
  takeLoads(): Map<string, number> {
    return this.#observers.takeLoads(this.#judge.rules)
  }

  /** Lets somebody look on while calls are judged; returns what ends it. */
  observe(observer: Observer): () => void {
    return this.#observers.observe(observer)
  }

  /** Keeps the last calls from now on, as far as rules read them, so that other rules can be tried on them. */
  record(most?: number): void {
    this.#observers.record(this.#judge.rules, most)
  }

  /** The recorded calls of the last milliseconds, oldest first. */
  recentCalls(lastMs = 300_000): RecordedCall[] {
    return this.#observers.recentCalls(lastMs)
  }

  /** What a document would have made of recorded calls, beside what the rules in force make of them. */
  preview(document: RuleDocument, calls: readonly RecordedCall[] = this.recentCalls()): Preview {
    return preview(calls, this.#live.document, document, one => this.#compile(one))
  }

  /** The rules in force as they were validated, each with its origin; trials are not among them. */
  get rules(): readonly Rule[] {
    return this.#live.document.rules
  }

  get trials(): readonly Trial[] {
    return this.#trials.list
  }

  /** Runs a changed rule in shadow beside the real one, in this process's memory only, until `endTrial`. */
  startTrial(rule: string, text: string): Trial {
    const trial = this.#trials.add(rule, text, this.#live.document, this.#parts.vocabulary, Date.now())
    try {
      this.#apply(this.#live.document)
    } catch (error) {
      this.#trials.remove(trial.id)
      throw error
    }
    return trial
  }

  /** Ends a trial; false where there is none of this id. */
  endTrial(id: string): boolean {
    const ended = this.#trials.remove(id)
    if (ended) this.#apply(this.#live.document)
    return ended
  }

  /** How many calls a rule that the fleet shares allowed and refused in each of the last minutes, up to a day. */
  async traffic(rule: string, minutes: number): Promise<MinuteOfTraffic[]> {
    return (await this.#parts.statistics?.read(rule, minutes)) ?? []
  }

  /** Forgets what was counted for the key of a call by one rule. */
  async reset(rule: string, call: Call): Promise<void> {
    const counted = this.#ruleNamed(rule)
    const key = counted.rule.key(call)
    counted.table.reset(key)
    if (counted.counter) await this.#shared.reset(counted.counter, key)
  }

  /**
   * Refuses a caller by one rule for a time: its own `block` unless told, milliseconds or a duration such as `10m`. For the
   * whole fleet where the rule is counted there. `who` is a call of theirs, their value of the one dimension that the rule
   * counts by, or a caller as `blocks` lists them.
   */
  async block(rule: string, who: Who, time?: string | number): Promise<void> {
    await blockBy(this.#ruleNamed(rule), who, time, { store: this.#store, shared: this.#shared, now: this.#now })
  }

  /** What a rule counts a caller under: the key that `blocks` lists them by. */
  keyOf(rule: string, who: Who): string {
    return keyOf(this.#ruleNamed(rule), who)
  }

  /** The callers whom rules refuse for a time, by one rule or by all; for the whole fleet where a rule is counted there. */
  async blocks(rule?: string): Promise<BlockedCaller[]> {
    const rules = rule === undefined ? this.#judge.rules : [this.#ruleNamed(rule)]
    const keeping = { store: this.#store, shared: this.#shared, now: this.#now }
    return (await Promise.all(rules.map(counted => blockedBy(counted, keeping)))).flat()
  }

  /** Lets a blocked caller in again; what the rule has counted for them is forgotten, or it would block them at once. */
  async unblock(rule: string, who: Who): Promise<void> {
    await unblockBy(this.#ruleNamed(rule), who, this.#shared)
  }

  /** Whether a rule of this id is known, be it on or off. */
  hasRule(id: string): boolean {
    return this.#document.rules.some(rule => rule.id === id)
  }

  /**
   * Adds a rule of the program's own, in the words of the rule file. A rule with the same id in the rule file or the config
   * centre takes its place, so that whoever runs the program has the last word. The same words again change nothing.
   */
  addRule(words: RuleOptions): void {
    if (this.#closed) throw closed()
    const { given } = this.#parts
    this.#live.add(words, given ? ruleToInput(words, given) : words)
  }

  /**
   * Removes a rule that `addRule`, a route's filter or an annotation has added, and what it has counted; false if there is
   * none of this id. Rules of a rule file, of a config center or of createLimiter's options are changed where they stand.
   */
  removeRule(id: string): boolean {
    if (this.#closed) throw closed()
    return this.#live.remove(id)
  }

  /** A section of the rule file in force, as its schema read it. */
  section(name: string): unknown {
    return this.#document.sections?.[name]
  }

  /** Follows a section of the rule file: it changes together with the rules, or neither does. */
  followSection(name: string, follower: SectionFollower): void {
    follower(this.section(name))()
    this.#followers.set(name, follower)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweeper)
    await this.#live.close()
    await Promise.race([this.#shared.close(), pause(CLOSING_MS, undefined, { ref: false })])
    // what was not told yet is told, unless Redis hangs
    await Promise.race([this.#parts.statistics?.close(), pause(CLOSING_MS, undefined, { ref: false })])
    this.#parts.disconnect?.()
    this.#parts.machine?.close()
  }

  #ruleNamed(id: string): RuleState {
    const counted = this.#judge.rules.find(candidate => candidate.rule.id === id)
    if (counted) return counted
    throw new DianaError('BAD_CALL', `there is no rule "${id}", or it is off`)
  }

  #tell(status: StoreStatus): void {
    const isHeard = this.events.emit('store', status)
    if (isHeard || status.healthy) return
    const { kind, code = 'STORE_FAILED', trouble, remedy } = status
    // whoever creates a limiter has a moment to begin to listen
    setImmediate(() => {
      if (this.#closed || this.events.listenerCount('store') > 0) return
      if (kind === 'lost') {
        warnOnce('DIANA_STORE_LOST_COUNTS')
        return
      }
      const warning = kind === 'misconfigured' ? 'DIANA_STORE_MISCONFIGURED' : 'DIANA_STORE_DOWN'
      warnOnce(warning, `${code}: ${trouble}; ${remedy}`, code)
    })
  }

  /** Warns of a source if nobody listens; whoever creates a limiter has a moment to begin to. */
  #warnLater(event: keyof typeof SOURCE_WARNINGS, { name, trouble = name }: SourceStatus): void {
    setImmediate(() => {
      if (this.events.listenerCount(event) > 0) return
      warnOfEach(SOURCE_WARNINGS[event], trouble)
    })
  }

  /** Puts a new set of rules in force: compiled beside the old one, then swapped in by one assignment. */
  #apply(document: RuleDocument): void {
    const addressOf = createAddressReader(document.trustProxy, document.forwardedBy)
    const followed = this.#askFollowers(document)
    this.#judge = this.#judgeBy(document, this.#judge.rules)
    this.#document = document
    this.#addressOf = addressOf
    for (const putInForce of followed) putInForce()
    this.#observers.follow(this.#judge.rules)
    this.#waitQueue.reconsider()
    this.#shared.reconsider()
  }

  /** Throws where a document cannot be put in force in this process; changes nothing, and lets calls pass meanwhile. */
  async #assertObeyable(document: RuleDocument): Promise<void> {
    createAddressReader(document.trustProxy, document.forwardedBy)
    this.#askFollowers(document)
    for (let at = 0; at < document.rules.length; at += COMPILE_RULES) {
      this.#compile({ ...document, rules: document.rules.slice(at, at + COMPILE_RULES) })
      await nextTurn()
    }
  }

  #askFollowers(document: RuleDocument): (() => void)[] {
    return [...this.#followers].map(([name, follower]) => follower(document.sections?.[name]))
  }

  #judgeBy(document: RuleDocument, before: readonly RuleState[]): Decider {
    const { rules, allows, denies } = this.#compile({ ...document, rules: [...document.rules, ...this.#trials.rules] })
    return new Decider({
      allows,
      denies,
      rules: bindCounters(rules, before, this.#store, this.#now(), this.#shared),
      store: this.#store,
      shared: this.#shared,
      answer: document.answer,
      watch: this.#watch,
      now: this.#now,
      onShared: (rule, allowed) => this.#parts.statistics?.count(rule, allowed),
      onRelease: (receipts, which) => {
        for (const receipt of receipts) giveBack(receipt, this.#now(), which)
        this.#waitQueue.freed(receipts)
      },
    })
  }

  #compile(document: RuleDocument): CompiledDocument {
    return compileDocument(document, this.#parts.algorithms, this.#parts.dimensions, () => this.#now() / 1000)
  }

  #assertUsable(call: Call, cost: number): void {
    if (this.#closed) throw closed()
    if (!isLazy(call) && (typeof call?.path !== 'string' || typeof call.method !== 'string')) {
      throw new DianaError('BAD_CALL', 'a call needs a method and a path, such as { method: "GET", path: "/orders" }')
    }
    if (call.headers !== undefined && !isLazy(call)) assertHeaders(call.headers)
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(cost)}`)
    }
  }
}

function isLazy(call: Call & { readonly [lazy]?: true }): boolean {
  return call?.[lazy] === true
}

function closed(): DianaError {
  return new DianaError('CLOSED', 'this limiter was closed; make a new one with createLimiter()')
}
