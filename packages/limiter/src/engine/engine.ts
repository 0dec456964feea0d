import { EventEmitter } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { type Clock, inMicroseconds, processMicroseconds } from '../common/clock.ts'
import { DEFAULT_PREFIX } from '../common/redis-url.ts'
import { warnOfEach, warnOnce } from '../common/warn-once.ts'
import { Decider } from '../decision/decider.ts'
import { ChargeReservations, refundCharge } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import type { GivenFunctions } from '../dimensions/reading/given-functions.ts'
import { DianaError } from '../errors.ts'
import { type AddressReader, createAddressReader, createPeerTest } from '../http/ip-address.ts'
import type { LimiterEvents } from '../limiter-status.ts'
import { OutsideLimits } from '../limits/outside-limits.ts'
import { OverloadGuard, onePriority } from '../overload/overload-guard.ts'
import type { Timers } from '../queue/timers.ts'
import { WaitQueue } from '../queue/wait-queue.ts'
import { DocumentThread } from '../reload/document-thread.ts'
import { LiveRules, type LiveRulesOptions } from '../reload/live-rules.ts'
import type { SourceStatus } from '../reload/source-state.ts'
import { type CompiledDocument, compileDocument } from '../rules/compile.ts'
import type { Rule, RuleDocument } from '../rules/rule.ts'
import { show } from '../rules/show.ts'
import { suggest } from '../rules/suggest.ts'
import { type Counters, createCounters } from '../stats/counters.ts'
import { FleetReporter } from '../stats/history/fleet-reporter.ts'
import type { Stats } from '../stats/stats.ts'
import { CompositeStore } from '../stores/composite-store.ts'
import { type CreditStore, MemoryCredits, type MoveCredit, SharedCredits } from '../stores/credits.ts'
import type { StoreStatus } from '../stores/failover/store-health.ts'
import { MemoryStore } from '../stores/memory/memory-store.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import { bindCounters } from './bind-counters.ts'
import type { createSharedStores, SharedStoresOptions } from './create-shared-stores.ts'
import { Observers } from './observers.ts'

export interface EngineOptions extends LiveRulesOptions, SharedStoresOptions {
  readonly disconnect?: (() => void) | undefined
  /** Makes the shared stores; a limiter without one does not load them. */
  readonly share?: typeof createSharedStores | undefined
  /** Moves credit of callers in the store. */
  readonly moveCredit?: MoveCredit | undefined
  /** Sends a command to the Redis of the store. */
  readonly send?: SendCommand | undefined
  readonly algorithms: readonly Algorithm[]
  readonly dimensions: readonly Dimension[]
  /** True if the vocabulary is what Diana brings: a thread then knows it, too. */
  readonly isOwnVocabulary?: boolean | undefined
  readonly clock?: Clock | undefined
  readonly maxKeys?: number | undefined
  /** No call waits longer by its rules, whatever they say. */
  readonly maxWaitMs?: number | undefined
  /** Decides no calls: it reads what other processes do. */
  readonly isObserver?: boolean | undefined
  /** The timers of calls that wait; those of Node unless given. */
  readonly timers?: Timers | undefined
  /** Functions that were given instead of names. */
  readonly given?: GivenFunctions | undefined
}

/** Reads a section's new value, throws if it is invalid, and returns what puts it in force, which may never be called. */
export type SectionFollower = (value: unknown) => () => void

const SWEEP_EVERY_MS = 200
const SWEEP_KEYS = 2048
const CLOSING_MS = 1000
/** The longest wait of a call for credit, for a store without a timeout of its own. */
const CREDIT_TIMEOUT_MS = 400
const SOURCE_WARNINGS = {
  rejected: 'DIANA_RULES_REJECTED',
  failure: 'DIANA_SOURCE_FAILED',
  missing: 'DIANA_RULES_MISSING',
} as const
/** The number of rules that are compiled between two calls while a document is only checked. */
const COMPILE_RULES = 250

/**
 * The rules in force with everything that they are decided by: stores, queue, counters. A limiter and its admin interface
 * share one.
 */
export class Engine {
  readonly options: EngineOptions
  readonly events: EventEmitter<LimiterEvents> = new EventEmitter()
  readonly now: () => number
  readonly store: MemoryStore
  readonly shared: CompositeStore
  readonly live: LiveRules
  readonly thread: DocumentThread
  readonly waitQueue: WaitQueue
  readonly counters: Counters = createCounters()
  readonly #reservations = new ChargeReservations()
  /** The limits of single callers from outside the rules. */
  readonly limits: OutsideLimits
  /** Permits of single callers beside their limits. */
  readonly credits: CreditStore
  readonly observers: Observers
  /** The document in force. */
  document: RuleDocument
  /** Decides by the rules in force; a reload replaces it by one assignment. */
  decider: Decider
  /** The caller's address, from the peer of the connection and the header that `document.forwardedBy` names. */
  addressOf: AddressReader
  /** True if a peer is a proxy whose headers are believed. */
  isTrusted: (peer: string | undefined) => boolean
  /** Refuses calls while this process has too much to do; undefined if the document does not ask for it. */
  guard: OverloadGuard | undefined
  #guarded: readonly unknown[] = [undefined, undefined]
  isClosed = false
  /** The jobs that wait for rules, which ask again when rules change or slots are free; undefined until some are scheduled. */
  jobs: { reconsider(): void; close(): void } | undefined
  readonly #followers = new Map<string, SectionFollower>()
  readonly #stopSweeping: () => void
  /** Reports what this process decides, for the history of the fleet. */
  readonly #reporter: FleetReporter | undefined
  #shadowRules: readonly Rule[] = []

  constructor(options: EngineOptions) {
    this.options = options
    this.now = options.clock ? inMicroseconds(options.clock) : processMicroseconds()
    this.store = new MemoryStore({ maxKeys: options.maxKeys })
    this.limits = new OutsideLimits({
      send: options.send,
      prefix: options.document.store?.prefix,
      nowMs: () => this.now() / 1000,
      functionOf: name => options.given?.limitFunction(name),
    })
    const { moveCredit, send, document } = options
    this.credits = moveCredit
      ? new SharedCredits({
          move: moveCredit,
          timeoutMs: document.store?.timeoutMs ?? CREDIT_TIMEOUT_MS,
          nowMs: () => performance.now(),
        })
      : new MemoryCredits()
    const share = options.share ?? (() => new CompositeStore({}))
    this.shared = share(options, options.document, {
      memory: this.store,
      now: this.now,
      rules: () => this.decider.rules,
      onFleet: status => this.#reportStore(status),
      onMachine: status => this.events.emit('counting', status),
    })
    this.waitQueue = new WaitQueue({
      now: this.now,
      decider: () => this.decider,
      counters: this.counters,
      timers: options.timers,
    })
    this.observers = new Observers(this.counters, () => this.now() / 1000)
    this.thread = new DocumentThread(options.vocabulary, options.isOwnVocabulary === true)
    this.live = new LiveRules({ ...options, thread: this.thread }, this.#liveRulesEvents())
    this.document = this.live.document
    this.decider = this.#createDecider(this.document, [])
    this.addressOf = createAddressReader(this.document.trustProxy, this.document.forwardedBy)
    this.isTrusted = createPeerTest(this.document.trustProxy)
    this.#stopSweeping = this.store.sweepEvery(SWEEP_EVERY_MS, SWEEP_KEYS, this.now)
    if (send && !options.isObserver) {
      this.#reporter = new FleetReporter({ send, prefix: this.storePrefix, stats: () => this.stats() })
      this.#reporter.start()
    }
  }

  /** Follows the sources of the rules; resolves when the first calls may be decided. */
  async start(): Promise<void> {
    await Promise.all([this.live.start(), this.shared.start()])
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.jobs?.close()
    this.#stopSweeping()
    this.limits.close()
    this.guard?.close()
    await this.live.close()
    await atMost(CLOSING_MS, this.shared.close())
    // counts that were not reported yet are reported, unless Redis hangs
    await atMost(CLOSING_MS, this.#reporter?.close())
    this.options.disconnect?.()
    this.options.machine?.close()
  }

  /** Returns the beginning of the names of the keys in the store. */
  get storePrefix(): string {
    return this.options.document.store?.prefix ?? DEFAULT_PREFIX
  }

  assertOpen(): void {
    if (this.isClosed) throw new DianaError('CLOSED', 'this limiter was closed; make a new one with createLimiter()')
  }

  /** Counts a call that could not be judged, and says whether it may pass. */
  passUnjudged(): boolean {
    const passes = this.document.whenFailed !== 'refuse'
    this.countUnjudged(passes)
    return passes
  }

  /** Counts a call that was not decided. */
  countUnjudged(passes: boolean): void {
    this.counters.unjudged[passes ? 'passed' : 'refused']++
  }

  ruleNamed(id: string): RuleState {
    const state = this.decider.rules.find(candidate => candidate.rule.id === id)
    if (state) return state
    const meant = suggest(
      id,
      this.decider.rules.map(({ rule }) => rule.id),
    )
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`
    throw new DianaError('BAD_CALL', `there is no rule ${show(id)}, or it is off${hint}`)
  }

  /** Follows a section of the rule file: it changes together with the rules, or neither does. */
  followSection(name: string, follower: SectionFollower): void {
    follower(this.document.sections?.[name])()
    this.#followers.set(name, follower)
  }

  /** Returns the counts of all calls since the start, and of those that each rule met; of this process alone. */
  stats(): Stats {
    const stats = this.observers.stats(this.decider.rules, this.shared)
    return this.guard ? { ...stats, overload: this.guard.status } : stats
  }

  /** Runs further rules beside those of the document, in place of earlier ones; throws if they cannot be compiled. */
  runShadowRules(rules: readonly Rule[]): void {
    const before = this.#shadowRules
    this.#shadowRules = rules
    try {
      this.apply(this.live.document)
    } catch (error) {
      this.#shadowRules = before
      throw error
    }
  }

  compile(document: RuleDocument): CompiledDocument {
    const { algorithms, dimensions, maxWaitMs } = this.options
    return compileDocument(document, algorithms, dimensions, () => this.now() / 1000, maxWaitMs)
  }

  /** Throws if a document cannot be put in force in this process; changes nothing, and lets calls pass meanwhile. */
  async assertApplicable(document: RuleDocument): Promise<void> {
    createAddressReader(document.trustProxy, document.forwardedBy)
    this.#askFollowers(document)
    for (let at = 0; at < document.rules.length; at += COMPILE_RULES) {
      this.compile({ ...document, rules: document.rules.slice(at, at + COMPILE_RULES) })
      await nextTurn()
    }
  }

  /** Puts a new set of rules in force: compiled beside the old one, then swapped in by one assignment. */
  apply(document: RuleDocument): void {
    const addressOf = createAddressReader(document.trustProxy, document.forwardedBy)
    const isTrusted = createPeerTest(document.trustProxy)
    const followed = this.#askFollowers(document)
    this.decider = this.#createDecider(document, this.decider.rules)
    this.document = document
    this.addressOf = addressOf
    this.isTrusted = isTrusted
    for (const putInForce of followed) putInForce()
    this.observers.follow(this.decider.rules)
    this.waitQueue.reconsider()
    this.jobs?.reconsider()
    this.shared.reconsider()
  }

  #askFollowers(document: RuleDocument): (() => void)[] {
    return [...this.#followers].map(([name, follower]) => follower(document.sections?.[name]))
  }

  #createDecider(document: RuleDocument, before: readonly RuleState[]): Decider {
    const compiled = this.compile({ ...document, rules: [...document.rules, ...this.#shadowRules] })
    const { rules, allows, denies, priorities } = compiled
    this.#guardBy(document, compiled)
    return new Decider({
      allows,
      denies,
      priorities,
      rules: bindCounters(rules, before, this.store, this.now(), this.shared, one => this.limits.limitsOf(one)),
      store: this.store,
      shared: this.shared,
      answer: document.answer,
      counters: this.counters,
      reservations: this.#reservations,
      now: this.now,
      onRelease: (receipts, which, ending) => {
        for (const receipt of receipts) refundCharge(receipt, this.now(), which, ending)
        this.waitQueue.freed(receipts)
        this.jobs?.reconsider()
      },
    })
  }

  /** Replaces the guard; one with the same settings stays, with its measurements. */
  #guardBy({ overload, priority }: RuleDocument, { priorities = onePriority, callerOf }: CompiledDocument): void {
    if (isDeepStrictEqual([overload, priority], this.#guarded)) return
    this.#guarded = [overload, priority]
    this.guard?.close()
    this.guard = overload && new OverloadGuard({ settings: overload, priorities, callerOf })
  }

  #liveRulesEvents(): ConstructorParameters<typeof LiveRules>[1] {
    return {
      onRules: document => this.apply(document),
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
    }
  }

  #reportStore(status: StoreStatus): void {
    const isHeard = this.events.emit('store', status)
    if (isHeard || status.healthy) return
    const { kind, code = 'STORE_FAILED', trouble, remedy } = status
    // the application that creates a limiter has a moment to add its listeners
    setImmediate(() => {
      if (this.isClosed || this.events.listenerCount('store') > 0) return
      if (kind === 'lost') {
        warnOnce('DIANA_STORE_LOST_COUNTS')
        return
      }
      const warning = kind === 'misconfigured' ? 'DIANA_STORE_MISCONFIGURED' : 'DIANA_STORE_DOWN'
      warnOnce(warning, `${code}: ${trouble}; ${remedy}`, code)
    })
  }

  /** Warns of a source unless the application listens; it has a moment to add its listeners. */
  #warnLater(event: keyof typeof SOURCE_WARNINGS, { name, trouble = name }: SourceStatus): void {
    setImmediate(() => {
      if (this.events.listenerCount(event) > 0) return
      warnOfEach(SOURCE_WARNINGS[event], trouble)
    })
  }
}

/** Waits for something, but no longer than this. The timer ends with it: it would keep all that was closed in memory. */
async function atMost(ms: number, work: unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms).unref()
  })
  await Promise.race([work, late]).finally(() => clearTimeout(timer))
}
