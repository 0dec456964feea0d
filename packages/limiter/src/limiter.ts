import { createAddressReader } from './address.ts'
import type { Algorithm } from './algorithms/algorithm.ts'
import type { Call } from './call.ts'
import { type Clock, inMicroseconds, steadyClock } from './clock.ts'
import type { Dimension } from './dimensions/dimension.ts'
import { DianaError } from './errors.ts'
import { explain, type RuleExplanation } from './explain.ts'
import { Judge } from './judge.ts'
import { type CountedRule, giveBack, type Judgement, type Receipt } from './judgement.ts'
import { Line } from './line.ts'
import { compileRules } from './rules/compile.ts'
import type { RuleDocument } from './rules/rule.ts'
import { MemoryStore } from './stores/memory.ts'
import type { Verdict } from './verdict.ts'
import { Waiting } from './waiting.ts'

/** How one call is counted: `cost` is 1 unless said, 0 only looks; `signal` ends a wait. */
export interface CheckOptions {
  readonly cost?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** What the limiter is doing at this moment. */
export interface Status {
  readonly rules: readonly { readonly id: string; readonly algorithm: string; readonly waiting: number }[]
  readonly keys: number
  readonly maxKeys: number
  /** Rules whose new callers share one counter, because as many keys are live as may be. */
  readonly crowded: readonly string[]
}

export interface LimiterParts {
  readonly document: RuleDocument
  readonly algorithms: readonly Algorithm[]
  readonly dimensions: readonly Dimension[]
  readonly clock?: Clock | undefined
  readonly maxKeys?: number | undefined
}

const SWEEP_EVERY_MS = 200
const SWEEP_KEYS = 4096

/** Judges calls by its rules. Make one with `createLimiter`, and close it. */
export class Limiter {
  readonly #now: () => number
  readonly #store: MemoryStore
  readonly #judge: Judge
  readonly #waiting: Waiting
  readonly #line = new Line()
  readonly #dimensions: readonly Dimension[]
  readonly #document: RuleDocument
  readonly #sweeper: NodeJS.Timeout
  #closed = false
  /** The caller's address, given the socket's peer and its X-Forwarded-For. */
  readonly addressOf: (
    peer: string | undefined,
    forwardedFor: string | readonly string[] | undefined,
  ) => string | undefined

  constructor(parts: LimiterParts) {
    const { document, algorithms, dimensions } = parts
    this.#now = inMicroseconds(parts.clock ?? steadyClock)
    this.#store = new MemoryStore({ maxKeys: parts.maxKeys })
    this.#document = document
    this.#dimensions = dimensions
    const freed = (receipts: readonly Receipt[]): void => this.#line.freed(receipts)
    this.#waiting = new Waiting(this.#store, this.#now, freed)
    this.#judge = new Judge(compileRules(document, algorithms, dimensions), this.#store, document.answer, receipts => {
      for (const receipt of receipts) giveBack(receipt, this.#now(), 'held')
      freed(receipts)
    })
    this.addressOf = createAddressReader(document.trustProxy)
    this.#sweeper = setInterval(() => this.#store.sweep(SWEEP_KEYS, this.#now()), SWEEP_EVERY_MS).unref()
  }

  /** Judges a call and counts it; a promise only where the call has to wait. */
  decide(call: Call, options?: CheckOptions): Verdict | Promise<Verdict> {
    const cost = options?.cost ?? 1
    this.#assertUsable(cost)
    const now = this.#now()
    if (cost === 0) return this.#judge.look(call, 0, now)
    const ahead = this.#line.isEmpty ? undefined : this.#firstLine(call)
    if (ahead) return this.#standInLine(call, cost, ahead, options?.signal)
    const judgement = this.#judge.take(call, cost, now)
    if (judgement.waitMs > 0) return this.#waiting.hold(judgement, now, options?.signal)
    if (judgement.fullHouse) return this.#standInLine(call, cost, judgement.fullHouse, options?.signal)
    return judgement
  }

  /** Judges a call and counts it, after whatever wait its rules ask for. */
  async check(call: Call, options?: CheckOptions): Promise<Verdict> {
    return this.decide(call, options)
  }

  /** Judges a call without counting it. */
  peek(call: Call, options?: Pick<CheckOptions, 'cost'>): Verdict {
    const cost = options?.cost ?? 1
    this.#assertUsable(cost)
    return this.#judge.look(call, cost, this.#now())
  }

  /** Which rules a call meets, under which key, with which numbers; counts nothing. */
  explain(call: Call): RuleExplanation[] {
    const { decisions } = this.peek(call)
    return explain(call, this.#judge.meets(call), decisions, this.#document.identify, this.#dimensions)
  }

  status(): Status {
    return {
      rules: this.#judge.rules.map(({ rule, waiting }) => ({ id: rule.id, algorithm: rule.algorithm, waiting })),
      keys: this.#store.keys,
      maxKeys: this.#store.maxKeys,
      crowded: this.#store.crowded(this.#now()),
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#sweeper)
  }

  #assertUsable(cost: number): void {
    if (this.#closed) throw new DianaError('CLOSED', 'this limiter was closed; make a new one with createLimiter()')
    if (!Number.isSafeInteger(cost) || cost < 0) {
      throw new DianaError('BAD_CALL', `cost must be a whole number of 0 or more, not ${String(cost)}`)
    }
  }

  /** The first rule of a call for whose places others are in line already. */
  #firstLine(call: Call): CountedRule | undefined {
    return this.#judge.meets(call).find(counted => this.#line.isWaiting(counted, counted.rule.key(call)))
  }

  async #standInLine(call: Call, cost: number, counted: CountedRule, signal?: AbortSignal): Promise<Verdict> {
    const { rule, waiting } = counted
    if (waiting >= rule.queueSize) return this.#judge.look(call, cost, this.#now()).refusedBy(rule, 'queue-full')
    const attempt = (): Judgement => this.#judge.take(call, cost, this.#now())
    const judgement = await this.#line.join(counted, rule.key(call), attempt, signal)
    return judgement.waitMs > 0 ? this.#waiting.hold(judgement, this.#now(), signal) : judgement
  }
}
