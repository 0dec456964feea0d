import { EventEmitter } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { type AddressReader, createAddressReader, type ForwardedBy } from './address.ts'
import type { Algorithm } from './algorithms/algorithm.ts'
import type { Call } from './call.ts'
import { type Clock, inMicroseconds, steadyClock } from './clock.ts'
import { countRules, shareRules } from './count-rules.ts'
import type { Dimension } from './dimensions/dimension.ts'
import type { GivenFunctions } from './dimensions/given-functions.ts'
import { Documents } from './documents.ts'
import { DianaError } from './errors.ts'
import { explain, type RuleExplanation } from './explain.ts'
import { Durations } from './figures/durations.ts'
import type { Figures } from './figures/figures.ts'
import type { Observer } from './figures/observer.ts'
import { CallRecorder, type RecordedCall } from './figures/recorder.ts'
import { blockBy, unblockBy } from './gate.ts'
import { Judge } from './judge.ts'
import { type CountedRule, giveBack, type Judgement, type NamedRules } from './judgement.ts'
import { Line } from './line.ts'
import { LiveRules, type LiveRulesParts } from './live-rules.ts'
import type { SourceStatus } from './origin.ts'
import { type Preview, preview } from './preview.ts'
import { type CompiledDocument, type CompiledRule, compileDocument } from './rules/compile.ts'
import { ruleInWords } from './rules/in-words.ts'
import type { Mistake } from './rules/mistake.ts'
import type { RuleOptions } from './rules/options.ts'
import type { Rule, RuleDocument } from './rules/rule.ts'
import { SharedStores } from './shared-stores.ts'
import type { FleetStore } from './stores/fleet-store.ts'
import { MemoryStore } from './stores/memory.ts'
import type { MinuteOfTraffic, RedisStatistics } from './stores/redis-statistics.ts'
import type { Roll } from './stores/roll.ts'
import { SharedStore, type SharedStoreOptions } from './stores/shared.ts'
import type { StoreStatus } from './stores/store-health.ts'
import { type Trial, Trials } from './trials.ts'
import type { Verdict } from './verdict.ts'
import { Waiting } from './waiting.ts'
import { createWatch, tallyRefusalBy } from './watch.ts'

/** How one call is judged. */
export interface CheckOptions extends NamedRules {
  /** 1 unless said; 0 only looks. A function that throws, or gives what is no cost, stands for 1. */
  readonly cost?: number | ((call: Call) => number) | undefined
  /** Ends a wait. */
  readonly signal?: AbortSignal | undefined
  /** Ids of rules to judge it by besides those that match it; one that is not there, or off, judges nothing. */
  readonly rule?: string | readonly string[] | undefined
  /** With `rule`: judged by these alone. */
  readonly only?: boolean | undefined
}

/** What the limiter is doing at this moment. */
export interface Status {
  readonly rules: readonly RuleStatus[]
  readonly sources: readonly SourceStatus[]
  /** How it stands with Redis; none where nothing is counted there. */
  readonly store?: StoreStatus | undefined
  /** How it stands with the counting process of this machine; none where this process counts for itself. */
  readonly counting?: StoreStatus | undefined
  readonly keys: number
  readonly maxKeys: number
  /** Rules whose new callers share one counter, because as many keys are live as may be. */
  readonly crowded: readonly string[]
}

export interface RuleStatus {
  readonly id: string
  readonly algorithm: string
  /** The source it came from. */
  readonly origin: string | undefined
  /** Calls that wait for it in this process. */
  readonly waiting: number
}

/** What a limiter tells while it runs, each with what happened. */
export interface LimiterEvents {
  /** A source's new document is in force. */
  rules: [source: SourceStatus]
  /** A source's new document cannot be obeyed; the last good one stays. */
  rejected: [source: SourceStatus, mistakes: readonly Mistake[]]
  /** A source cannot be read; the last good rules stay. */
  failure: [source: SourceStatus]
  /** Redis can no longer be asked, or can be asked again. */
  store: [status: StoreStatus]
  /** The counting process of this machine can no longer be asked, or can be asked again. */
  counting: [status: StoreStatus]
}

export interface LimiterParts extends LiveRulesParts {
  /** Where rules are counted for the whole fleet, and how it is left. */
  readonly fleet?: FleetStore | undefined
  /** Where the processes that count there know of each other. */
  readonly roll?: Roll | undefined
  readonly hasParts?: boolean | undefined
  readonly reconnect?: (() => void) | undefined
  readonly lastError?: (() => unknown) | undefined
  /** Where the processes of this machine count together what is not the fleet's. */
  readonly machine?: (FleetStore & Roll) | undefined
  readonly statistics?: RedisStatistics | undefined
  readonly disconnect?: (() => void) | undefined
  readonly algorithms: readonly Algorithm[]
  readonly dimensions: readonly Dimension[]
  readonly clock?: Clock | undefined
  readonly maxKeys?: number | undefined
  /** Functions in place of words. */
  readonly given?: GivenFunctions | undefined
}

/** Reads a section's new value, throws where it cannot be obeyed, and returns what puts it in force. */
export type SectionFollower = (value: unknown) => () => void

const SWEEP_EVERY_MS = 200
const SWEEP_KEYS = 2048
const ASK_AGAIN_MS = 25
const CLOSING_MS = 1000
const DEFAULT_STORE_TIMEOUT_MS = 50
/** A counting process that dies is noticed at once; this is for one that hangs, and must outlast a busy machine. */
const COUNTING_TIMEOUT_MS = 500
/** One call in so many is timed; a power of two. */
const TIMED_ONE_OF = 32

/** Judges calls by its rules. Make one with `createLimiter`, and close it. */
export class Limiter {
  readonly events: EventEmitter<LimiterEvents> = new EventEmitter()
  readonly #parts: LimiterParts
  readonly #now: () => number
  readonly #store: MemoryStore
  readonly #fleet: SharedStore | undefined
  readonly #machine: SharedStore | undefined
  readonly #shared: SharedStores
  readonly #live: LiveRules
  readonly #waiting: Waiting
  readonly #line = new Line()
  readonly #followers = new Map<string, SectionFollower>()
  readonly #sweeper: NodeJS.Timeout
  readonly #watch = createWatch()
  readonly #durations = { memory: new Durations(), redis: new Durations() }
  readonly #trials = new Trials()
  /** The documents that the rules come from: to read, to check, to write. */
  readonly documents: Documents
  #recorder: CallRecorder | undefined
  #decided = 0
  /** The caller's address, given the socket's peer and the header that `forwardedBy` names. */
  readonly addressOf: AddressReader = (peer, forwardedFor) => this.#addressOf(peer, forwardedFor)
  #document: RuleDocument
  #judge: Judge
  #addressOf: AddressReader
  #closed = false

  constructor(parts: LimiterParts) {
    this.#parts = parts
    this.#now = inMicroseconds(parts.clock ?? steadyClock)
    this.#store = new MemoryStore({ maxKeys: parts.maxKeys })
    this.#fleet = parts.fleet && this.#shareFleet(parts.fleet)
    this.#machine = parts.machine && this.#shareMachine(parts.machine)
    this.#shared = new SharedStores({ fleet: this.#fleet, machine: this.#machine })
    this.#waiting = new Waiting(this.#now, receipts => this.#line.freed(receipts))
    this.#live = new LiveRules(parts, {
      onRules: document => this.#obey(document),
      onTaken: source => this.events.emit('rules', source),
      onRejected: (source, mistakes) => this.events.emit('rejected', source, mistakes),
      onFailure: source => this.events.emit('failure', source),
    })
    this.documents = new Documents(this.#live, parts.vocabulary, document => this.#compile(document))
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
    const told = options?.cost ?? 1
    const cost = typeof told === 'function' ? costBy(told, call) : told
    this.#assertUsable(call, cost)
    if (this.#watch.observers.length === 0) return this.#decide(call, cost, options)
    if (cost > 0) for (const observer of this.#watch.observers) observer.onCall?.(call, cost)
    const verdict = this.#decide(call, cost, options)
    return verdict instanceof Promise ? verdict.then(one => this.#tellVerdict(one)) : this.#tellVerdict(verdict)
  }

  #decide(call: Call, cost: number, options?: CheckOptions): Verdict | Promise<Verdict> {
    const now = this.#now()
    if (cost === 0) return this.#judge.look(call, 0, now, options)
    const ahead = this.#line.isEmpty ? undefined : this.#firstLine(call, options)
    if (ahead) return this.#standInLine(call, cost, ahead, options)
    const startedMs = (++this.#decided & (TIMED_ONE_OF - 1)) === 0 ? performance.now() : undefined
    const judgement = this.#judge.take(call, cost, now, options)
    if (judgement instanceof Promise) {
      return judgement.then(one => {
        if (startedMs !== undefined) this.#time('redis', startedMs)
        return this.#hold(one, call, cost, now, options)
      })
    }
    if (startedMs !== undefined) this.#time('memory', startedMs)
    return this.#hold(judgement, call, cost, now, options)
  }

  /** Judges a call and counts it, after whatever wait its rules ask for. */
  async check(call: Call, options?: CheckOptions): Promise<Verdict> {
    return this.decide(call, options)
  }

  /** Judges a call without counting it. */
  async peek(call: Call, options?: Omit<CheckOptions, 'signal'>): Promise<Verdict> {
    const told = options?.cost ?? 1
    const cost = typeof told === 'function' ? costBy(told, call) : told
    this.#assertUsable(call, cost)
    return this.#judge.look(call, cost, this.#now(), options)
  }

  /** Which rules a call meets, under which key, with which numbers; counts nothing. */
  async explain(call: Call, options?: NamedRules): Promise<RuleExplanation[]> {
    const { decisions } = await this.peek(call, options)
    return explain(call, this.#judge.meets(call, options), decisions)
  }

  status(): Status {
    return {
      rules: this.#judge.rules.map(({ rule, waiting }) => {
        return { id: rule.id, algorithm: rule.algorithm, origin: rule.origin, waiting }
      }),
      sources: this.#live.sources(),
      store: this.#fleet?.status,
      counting: this.#machine?.status,
      keys: this.#store.keys,
      maxKeys: this.#store.maxKeys,
      crowded: this.#store.crowded(this.#now()),
    }
  }

  /** What became of all calls since the start, and of those that each rule met; this process's own. */
  figures(): Figures {
    const rules = this.#judge.rules.map(({ rule, waiting, tally }) => ({ id: rule.id, waiting, ...tally.read() }))
    const { memory, redis } = this.#durations
    return { total: this.#watch.total.read(), rules, durations: { memory: memory.read(), redis: redis.read() } }
  }

  /** How full the fullest key of each rule was since this was last asked, from 0 to 1; the first time, nothing. */
  takeLoads(): Map<string, number> {
    this.#watch.tracksLoads = true
    const loads = new Map<string, number>()
    for (const { rule, tally } of this.#judge.rules) {
      const load = tally.takeLoad(rule.meters)
      if (load !== undefined) loads.set(rule.id, load)
    }
    return loads
  }

  /** Lets somebody look on while calls are judged; returns what ends it. */
  observe(observer: Observer): () => void {
    this.#watch.observers = [...this.#watch.observers, observer]
    return () => {
      this.#watch.observers = this.#watch.observers.filter(one => one !== observer)
    }
  }

  /** Keeps the last calls from now on, as far as rules read them, so that other rules can be tried on them. */
  record(most?: number): void {
    if (this.#recorder) return
    const recorder = new CallRecorder({ now: () => this.#now() / 1000, ...(most === undefined ? {} : { most }) })
    recorder.use(this.#judge.rules.map(({ rule }) => rule))
    this.#recorder = recorder
    this.observe({ onCall: (call, cost) => recorder.add(call, cost) })
  }

  /** The recorded calls of the last milliseconds, oldest first. */
  recentCalls(lastMs = 300_000): RecordedCall[] {
    return this.#recorder?.since(this.#now() / 1000 - lastMs) ?? []
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
      this.#obey(this.#live.document)
    } catch (error) {
      this.#trials.remove(trial.id)
      throw error
    }
    return trial
  }

  /** Ends a trial; false where there is none of this id. */
  endTrial(id: string): boolean {
    const ended = this.#trials.remove(id)
    if (ended) this.#obey(this.#live.document)
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
   * whole fleet where the rule is counted there. `who` is a call of his, or his value of the one dimension that the rule
   * counts by.
   */
  async block(rule: string, who: Call | string, time?: string | number): Promise<void> {
    await blockBy(this.#ruleNamed(rule), who, time, { store: this.#store, shared: this.#shared, now: this.#now })
  }

  /** Lets a blocked caller in again. */
  async unblock(rule: string, who: Call | string): Promise<void> {
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
    this.#live.add(words, given ? ruleInWords(words, given) : words)
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

  #ruleNamed(id: string): CountedRule {
    const counted = this.#judge.rules.find(candidate => candidate.rule.id === id)
    if (counted) return counted
    throw new DianaError('BAD_CALL', `there is no rule "${id}", or it is off`)
  }

  #shareFleet(fleet: FleetStore): SharedStore {
    const { document, roll, hasParts, reconnect, lastError } = this.#parts
    return new SharedStore(fleet, this.#store, {
      ...{ roll, hasParts, reconnect, lastError },
      ...this.#sharing(({ distributed }) => distributed),
      timeoutMs: document.store?.timeoutMs ?? DEFAULT_STORE_TIMEOUT_MS,
      assumedFleet: document.store?.fleet,
      onChange: status => this.#tell(status),
    })
  }

  #shareMachine(machine: FleetStore & Roll): SharedStore {
    return new SharedStore(machine, this.#store, {
      ...this.#sharing(({ distributed }) => !distributed),
      roll: machine,
      timeoutMs: COUNTING_TIMEOUT_MS,
      onChange: status => this.events.emit('counting', status),
    })
  }

  #sharing(isOurs: (rule: CompiledRule) => boolean): Pick<SharedStoreOptions, 'now' | 'rules' | 'onPart'> {
    return {
      now: this.#now,
      rules: () => this.#judge.rules.flatMap(({ rule, counter }) => (counter && isOurs(rule) ? [rule.id] : [])),
      onPart: () => shareRules(this.#judge.rules, this.#shared, this.#now()),
    }
  }

  #tell(status: StoreStatus): void {
    const isHeard = this.events.emit('store', status)
    // what no waiting mends must not stay unheard
    if (!isHeard && status.kind === 'misconfigured') {
      process.emitWarning(`Diana cannot count in Redis: ${status.trouble}; check user, password and ACL of store.redis`)
    }
  }

  /** Puts a new set of rules in force: compiled beside the old one, then swapped in by one assignment. */
  #obey(document: RuleDocument): void {
    const addressOf = createAddressReader(document.trustProxy, document.forwardedBy)
    const followed = [...this.#followers].map(([name, follower]) => follower(document.sections?.[name]))
    this.#judge = this.#judgeBy(document, this.#judge.rules)
    this.#document = document
    this.#addressOf = addressOf
    for (const putInForce of followed) putInForce()
    this.#recorder?.use(this.#judge.rules.map(({ rule }) => rule))
    this.#line.reconsider()
    this.#shared.reconsider()
  }

  #judgeBy(document: RuleDocument, before: readonly CountedRule[]): Judge {
    const { rules, allows, denies } = this.#compile({ ...document, rules: [...document.rules, ...this.#trials.rules] })
    return new Judge({
      allows,
      denies,
      rules: countRules(rules, before, this.#store, this.#now(), this.#shared),
      store: this.#store,
      shared: this.#shared,
      answer: document.answer,
      watch: this.#watch,
      now: this.#now,
      onShared: (rule, allowed) => this.#parts.statistics?.count(rule, allowed),
      onRelease: receipts => {
        for (const receipt of receipts) giveBack(receipt, this.#now(), 'held')
        this.#line.freed(receipts)
      },
    })
  }

  #compile(document: RuleDocument): CompiledDocument {
    return compileDocument(document, this.#parts.algorithms, this.#parts.dimensions, () => this.#now() / 1000)
  }

  #time(store: 'memory' | 'redis', startedMs: number): void {
    const seconds = (performance.now() - startedMs) / 1000
    this.#durations[store].add(seconds)
    for (const observer of this.#watch.observers) observer.onTimed?.(seconds, store)
  }

  #tellVerdict(verdict: Verdict): Verdict {
    for (const observer of this.#watch.observers) observer.onVerdict?.(verdict)
    return verdict
  }

  #assertUsable(call: Call, cost: number): void {
    if (this.#closed) throw closed()
    if (typeof call?.path !== 'string' || typeof call.method !== 'string') {
      throw new DianaError('BAD_CALL', 'a call needs a method and a path, such as { method: "GET", path: "/orders" }')
    }
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(cost)}`)
    }
  }

  /** The first rule of a call for whose places others are in line already. */
  #firstLine(call: Call, options?: NamedRules): CountedRule | undefined {
    return this.#judge.meets(call, options).find(counted => this.#line.isWaiting(counted, counted.rule.key(call)))
  }

  /** Holds a call back for as long as its judgement says, if at all. */
  #hold(
    judgement: Judgement,
    call: Call,
    cost: number,
    since: number,
    options?: CheckOptions,
  ): Verdict | Promise<Verdict> {
    if (judgement.waitMs > 0) return this.#waiting.hold(judgement, since, options?.signal)
    if (judgement.fullHouse) return this.#standInLine(call, cost, judgement.fullHouse, options)
    return judgement
  }

  async #standInLine(call: Call, cost: number, counted: CountedRule, options?: CheckOptions): Promise<Verdict> {
    const { rule, waiting } = counted
    const since = this.#now()
    if (waiting >= rule.queueSize) {
      tallyRefusalBy(counted, rule.key(call), this.#watch)
      return (await this.#judge.look(call, cost, since, options)).refusedBy(rule, 'queue-full')
    }
    const signal = options?.signal
    const take = () => this.#judge.takeHere(call, cost, this.#now(), options)
    const judgement = this.#judge.meets(call, options).some(({ counter }) => counter)
      ? await this.#askAgain(call, cost, counted, options)
      : await this.#line.join(counted, rule.key(call), take, signal)
    if (judgement.reason === 'timeout') tallyRefusalBy(counted, rule.key(call), this.#watch)
    if (judgement.waitMs > 0) return this.#waiting.hold(judgement, since, signal)
    if (judgement.allowed) {
      counted.tally.waited++
      this.#watch.total.waited++
    }
    return judgement.held(judgement.receipts, (this.#now() - since) / 1000)
  }

  /** Waits for a place that another process may free: nobody tells, so it is asked for again and again. */
  async #askAgain(call: Call, cost: number, counted: CountedRule, options?: CheckOptions): Promise<Judgement> {
    const signal = options?.signal
    const until = this.#now() + counted.rule.queueTimeoutMs * 1000
    counted.waiting++
    try {
      for (;;) {
        await pause(ASK_AGAIN_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => signal?.throwIfAborted())
        const judgement = await this.#judge.take(call, cost, this.#now(), options)
        if (!judgement.fullHouse) return judgement
        if (this.#now() >= until) return judgement.refusedBy(counted.rule, 'timeout')
      }
    } finally {
      counted.waiting--
    }
  }
}

function closed(): DianaError {
  return new DianaError('CLOSED', 'this limiter was closed; make a new one with createLimiter()')
}

/** What an application's function says of a call; what it makes of a hostile one must not let it pass for nothing. */
function costBy(tell: (call: Call) => number, call: Call): number {
  try {
    const cost = tell(call)
    return Number.isSafeInteger(cost) && cost >= 0 ? cost : 1
  } catch {
    return 1
  }
}
