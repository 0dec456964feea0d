import type { Call } from '../../../packages/limiter/src/call.ts'
import { createSharedStores } from '../../../packages/limiter/src/engine/create-shared-stores.ts'
import { Engine } from '../../../packages/limiter/src/engine/engine.ts'
import { Limiter } from '../../../packages/limiter/src/limiter.ts'
import { mergeExtensions } from '../../../packages/limiter/src/reload/extensions.ts'
import { parseOptions, type RuleOptions } from '../../../packages/limiter/src/rules/parse.ts'
import type { RuleDocument } from '../../../packages/limiter/src/rules/rule.ts'
import type { SharedStore } from '../../../packages/limiter/src/stores/store.ts'
import { LeasingStore } from '../../../packages/limiter/src/testing/stores/leasing-store.ts'
import type { Verdict } from '../../../packages/limiter/src/verdict.ts'
import { LateTimers } from './late-timers.ts'

const vocabulary = mergeExtensions({}, [])
const { algorithms, dimensions } = vocabulary
const START_US = Date.UTC(2026, 10, 15) * 1000

/** What becomes of a call; moments are milliseconds after the start. */
export interface Fate {
  readonly key: string
  readonly cost: number
  readonly rank: 'low' | 'usual' | 'high'
  readonly cameAt: number
  /** When it ended, and as which call of all: passed, refused or aborted. */
  endedAt?: number
  order?: number
  verdict?: Verdict
  left?: boolean
  error?: unknown
  leave(): void
}

/** A limiter in virtual time, whose timers and whose store may be late, and the calls that it has decided. */
export class QueueWorld {
  readonly timers = new LateTimers(START_US)
  readonly limiter: Limiter
  readonly fates: Fate[] = []
  /** By how much answers of the store are late. */
  answersMs = 0
  /** By how much the clock has stepped forward. */
  #steppedUs = 0
  #ended = 0
  readonly #store = new LeasingStore()
  readonly #engine: Engine
  readonly #isShared: boolean
  /** When the last answer of the store arrives: answers come in the order of the questions. */
  #answeredAt = 0

  constructor(rules: readonly RuleOptions[], { isShared = false }: { isShared?: boolean } = {}) {
    this.#isShared = isShared
    this.#engine = new Engine({
      ...{ document: this.#documentOf(rules), vocabulary, algorithms, dimensions },
      ...{ clock: () => this.#now() / 1000, timers: this.timers, fleet: isShared ? this.#lateStore() : undefined },
      share: createSharedStores,
    })
    this.limiter = new Limiter(this.#engine)
  }

  /** Puts rules in force in place of those before. */
  use(rules: readonly RuleOptions[]): void {
    this.#engine.apply(this.#documentOf(rules))
  }

  #documentOf(rules: readonly RuleOptions[]): RuleDocument {
    const store = this.#isShared ? { store: { redis: 'redis://custom', timeout: '60s' } } : {}
    const priority = [
      { match: { header: { 'x-rank': 'low' } }, level: 'sheddable' },
      { match: { header: { 'x-rank': 'high' } }, level: 'critical' },
    ]
    const { document, mistakes } = parseOptions({ priority, rules, ...store }, vocabulary)
    if (!document) throw new Error(JSON.stringify(mistakes))
    return document
  }

  /** Milliseconds after the start, as timers count them. */
  get nowMs(): number {
    return (this.timers.now - START_US) / 1000
  }

  async advance(ms: number): Promise<void> {
    await settle()
    await this.timers.advanceTo(this.timers.now + ms * 1000, settle)
  }

  stepClock(ms: number): void {
    this.#steppedUs += ms * 1000
  }

  async call(key = 'a', cost = 1, rank: Fate['rank'] = 'usual'): Promise<Fate> {
    const controller = new AbortController()
    const fate: Fate = { key, cost, rank, cameAt: this.nowMs, leave: () => controller.abort('left') }
    this.fates.push(fate)
    const call: Call = { method: 'GET', path: '/', attributes: { account: key }, headers: { 'x-rank': rank } }
    this.limiter.check(call, { cost, signal: controller.signal }).then(
      verdict => this.#end(fate, { verdict }),
      error => this.#end(fate, error === 'left' ? { left: true } : { error }),
    )
    await settle()
    return fate
  }

  get waiting(): Fate[] {
    return this.fates.filter(({ endedAt }) => endedAt === undefined)
  }

  get passed(): Fate[] {
    return this.fates.filter(({ verdict }) => verdict?.allowed).sort((a, b) => a.order! - b.order!)
  }

  async close(): Promise<void> {
    await this.limiter.close()
  }

  #now(): number {
    return this.timers.now + this.#steppedUs
  }

  #end(fate: Fate, how: Partial<Fate>): void {
    Object.assign(fate, how, { endedAt: this.nowMs, order: this.#ended++ })
  }

  #lateStore(): SharedStore {
    const view = this.#store.view('one')
    const { lease: _, ...rest } = view
    // the store decides when it is asked, and only its answer is late
    const late = <T>(answer: () => T): Promise<T> => {
      const answered = answer()
      this.#answeredAt = Math.max(this.#answeredAt, this.timers.now + this.answersMs * 1000)
      return new Promise(resolve => void this.timers.at(this.#answeredAt, () => resolve(answered)))
    }
    const at = (): LeasingStore => {
      this.#store.now = this.timers.now
      return this.#store
    }
    return {
      ...rest,
      take: charges => late(() => at().take(charges)),
      look: charges => late(() => at().look(charges)),
      giveBack: refunds => at().giveBack(refunds),
    }
  }
}

/** Lets all promises that are settled be heard. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await undefined
}
