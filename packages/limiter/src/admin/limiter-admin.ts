import type { Call } from '../call.ts'
import { keyOf, type Who } from '../decision/blocklist.ts'
import type { NamedRules } from '../decision/check-options.ts'
import { explainMisses, leasedFor, type RuleMiss } from '../decision/explain.ts'
import type { Engine } from '../engine/engine.ts'
import { engineOf } from '../engine/engine-of.ts'
import type { Limiter } from '../limiter.ts'
import { assertOverride, type OverrideOptions } from '../limits/assert-override.ts'
import type { Override } from '../limits/overrides.ts'
import type { Vocabulary } from '../rules/parse.ts'
import type { RuleDocument } from '../rules/rule.ts'
import { optionsOf } from '../rules/yaml/read-document.ts'
import { FleetHistory } from '../stats/history/fleet-history.ts'
import type { Observer } from '../stats/observer.ts'
import type { RecordedCall } from '../stats/recorder.ts'
import type { Stats } from '../stats/stats.ts'
import type { InspectedLedger } from '../stores/redis/read-ledger.ts'
import { Documents } from './documents.ts'
import { inspectLedgers } from './inspect.ts'
import { type Preview, preview } from './preview.ts'
import { TrafficWatch } from './traffic-watch.ts'
import { type Trial, Trials } from './trials.ts'

const admins = new WeakMap<Engine, LimiterAdmin>()

/** Returns what a console needs of a limiter; the same object each time. */
export function adminOf(limiter: Limiter): LimiterAdmin {
  const engine = engineOf(limiter)
  const known = admins.get(engine)
  if (known) return known
  const admin = new LimiterAdmin(engine)
  admins.set(engine, admin)
  return admin
}

/** Statistics, recorded calls, trials and rule documents of a limiter. Get it with `adminOf`. */
export class LimiterAdmin {
  /** The documents that the rules come from: to read, to check, to write. */
  readonly documents: Documents
  readonly #engine: Engine
  readonly #trials = new Trials()
  #fleetHistory: FleetHistory | undefined

  /** @internal */
  constructor(engine: Engine) {
    this.#engine = engine
    const { live, thread, options } = engine
    this.documents = new Documents(live, options.vocabulary, thread, document => engine.assertApplicable(document))
  }

  /** Returns the counts of all calls since the start, and of those that each rule met; of this process alone. */
  stats(): Stats {
    return this.#engine.stats()
  }

  /** Returns how full the fullest key of each rule was since this was last called, from 0 to 1; empty the first time. */
  takeLoads(): Map<string, number> {
    return this.#engine.observers.takeLoads(this.#engine.decider.rules)
  }

  /** Calls an observer while calls are decided; returns a function that ends this. */
  observe(observer: Observer): () => void {
    return this.#engine.observers.observe(observer)
  }

  /** Reads from now on who calls and who is refused, of many calls a sample; to be stopped. */
  watchTraffic(): TrafficWatch {
    return new TrafficWatch(this.#engine)
  }

  /** Keeps the last calls from now on, as far as rules read them, so that other rules can be tried on them. */
  record(maxCalls?: number): void {
    this.#engine.observers.record(this.#engine.decider.rules, maxCalls)
  }

  /** Returns the recorded calls of the last milliseconds, oldest first. */
  recentCalls(lastMs = 300_000): RecordedCall[] {
    return this.#engine.observers.recentCalls(lastMs)
  }

  /** Returns what a document would have decided on recorded calls, beside what the rules in force decide on them. */
  preview(document: RuleDocument, calls: readonly RecordedCall[] = this.recentCalls()): Preview {
    return preview(calls, this.#engine.live.document, document, one => this.#engine.compile(one))
  }

  get trials(): readonly Trial[] {
    return this.#trials.list
  }

  /** Runs a changed rule in shadow beside the real one, in this process's memory only, until `endTrial`. */
  startTrial(rule: string, text: string): Trial {
    const { live, options } = this.#engine
    const trial = this.#trials.add(rule, text, live.document, options.vocabulary, Date.now())
    try {
      this.#engine.runShadowRules(this.#trials.rules)
    } catch (error) {
      this.#trials.remove(trial.id)
      throw error
    }
    return trial
  }

  /** Ends a trial; false if there is none of this id. */
  endTrial(id: string): boolean {
    const isEnded = this.#trials.remove(id)
    if (isEnded) this.#engine.runShadowRules(this.#trials.rules)
    return isEnded
  }

  /** Returns what all processes that count in the same Redis decided in the last two weeks; undefined without Redis. */
  get fleetHistory(): FleetHistory | undefined {
    const { options, storePrefix } = this.#engine
    if (options.send) this.#fleetHistory ??= new FleetHistory(options.send, storePrefix)
    return this.#fleetHistory
  }

  /** Reads what Redis knows of callers, by the name of a key or by a pattern such as `diana:login:*`. */
  async inspect(pattern: string, most = 100): Promise<InspectedLedger[]> {
    return await inspectLedgers(this.#engine, pattern, most)
  }

  /** Returns the limits that operators have given single callers, at most `most`; those that have ended are left out. */
  async overrides(most = 1000): Promise<Override[]> {
    return await this.#engine.limits.overrides.list(most, Date.now())
  }

  /** Gives one caller of a rule another limit, for all processes that share the store; throws if the rule cannot count it. */
  async setOverride(rule: string, who: Who, options: OverrideOptions): Promise<Override> {
    const state = this.#engine.ruleNamed(rule)
    assertOverride(state.rule, options, Date.now())
    const { limit, until, setBy, reason } = options
    const details = { limit, until, setAt: Date.now(), setBy, reason }
    const override: Override = { rule, key: keyOf(state, who), ...details }
    await this.#engine.limits.overrides.set(override)
    await this.#engine.limits.follow()
    return override
  }

  /** Ends the override of a caller; false if there is none. */
  async removeOverride(rule: string, who: Who): Promise<boolean> {
    const isRemoved = await this.#engine.limits.overrides.remove(rule, keyOf(this.#engine.ruleNamed(rule), who))
    await this.#engine.limits.follow()
    return isRemoved
  }

  /** Returns the key under which a rule counts a caller: `blocks` lists them by it. */
  keyOf(rule: string, who: Who): string {
    return keyOf(this.#engine.ruleNamed(rule), who)
  }

  /** Returns the permits of a call's keys that this process holds in advance, by rule; rules without such permits are left out. */
  leasedFor(call: Call, options?: NamedRules): Map<string, number> {
    const { decider, shared } = this.#engine
    return leasedFor(call, decider.meets(call, options), shared)
  }

  /** Returns where the values of callers are read: what `identify` of the document says. */
  get identify(): RuleDocument['identify'] {
    return this.#engine.live.document.identify
  }

  /** The names that rules may use at this moment. */
  get ruleNames(): RuleNames {
    const { live, options } = this.#engine
    return ruleNamesOf(options.vocabulary, live.document)
  }

  /** Returns the rules that do not apply to a call, each with the reason. */
  explainMisses(call: Call, options?: NamedRules): RuleMiss[] {
    const { decider, live } = this.#engine
    const met = new Set(decider.meets(call, options).map(({ rule }) => rule.id))
    return explainMisses(
      call,
      live.document.rules.filter(({ id }) => !met.has(id)),
    )
  }
}

/** The names that rules may use in `algorithm` and `by`. */
export interface RuleNames {
  /** The first one is the default. */
  readonly algorithms: readonly { readonly name: string; readonly limit: 'rate' | 'count' }[]
  /** Dimensions that stand alone: `account`, `ip`, and those that `identify` defines. */
  readonly dimensions: readonly string[]
  /** Dimensions that need a name behind a colon: `header`. */
  readonly namedDimensions: readonly string[]
}

/** Names that need no definition: the application may give their values. */
const given = ['account', 'device']

export function ruleNamesOf({ algorithms, dimensions }: Vocabulary, document: RuleDocument): RuleNames {
  const options = optionsOf(document)
  const usable = dimensions.filter(({ needs }) => needs === undefined || options.includes(needs))
  const named = (argument: 'none' | 'required') => usable.filter(one => one.argument === argument).map(one => one.name)
  return {
    algorithms: algorithms.map(({ name, limit }) => ({ name, limit: limit === 'count' ? 'count' : 'rate' })),
    dimensions: [...new Set([...given, ...Object.keys(document.identify), ...named('none')])],
    namedDimensions: named('required'),
  }
}
