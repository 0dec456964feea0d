import type { Rule, RuleDocument } from 'diana-limiter'
import type { CompiledRule } from 'diana-limiter/gateway'
import { type Curve, curveOf, mostOf } from './curve.ts'
import { type FreeKey, freeKeysOf, keysOf } from './free-keys.ts'
import { findSchedule, type Schedule } from './schedule.ts'

/** The intervals whose bounds are shown, in microseconds. */
export const INTERVALS = { second: 1e6, minute: 60e6, hour: 3600e6, day: 86_400e6 } as const
export type Interval = keyof typeof INTERVALS
export const intervals: readonly Interval[] = ['second', 'minute', 'hour', 'day']

/** The most calls that pass in any interval, by its length; null for no bound. */
export type Amounts = Readonly<Record<Interval, number | null>>

/** One rule, and the calls that it lets pass. */
export class BoundedRule {
  readonly rule: Rule
  readonly compiled: CompiledRule
  /** Each version of the limits that a caller can have: that of the rule, and those of plans. */
  readonly variants: readonly {
    readonly name: string | undefined
    readonly compiled: CompiledRule
    readonly curves: readonly Curve[]
  }[]
  readonly free: readonly FreeKey[]
  /** Under how many keys all calls are counted. */
  readonly keys: number
  /** The reason that nothing bounds the calls of one key in time; undefined if something does. */
  readonly unbounded: string | undefined
  /** Remarks that a reader of the numbers has to know. */
  readonly notes: readonly string[]
  /** The cost of a call. */
  readonly cost: number
  readonly #nowUs: number

  constructor(rule: Rule, compiled: CompiledRule, document: RuleDocument, nowUs: number) {
    this.rule = rule
    this.compiled = compiled
    this.#nowUs = nowUs
    this.cost = typeof rule.cost === 'number' ? rule.cost : 1
    const plans = [...(compiled.plans?.values ?? [])]
    this.variants = [
      { name: undefined, compiled, curves: this.#curvesOf(compiled) },
      ...plans.map(([name, one]) => ({ name, compiled: one, curves: this.#curvesOf(one) })),
    ]
    this.free = freeKeysOf(rule, document)
    this.keys = keysOf(rule)
    this.unbounded = this.#whyUnbounded()
    this.notes = this.#notesOf(document)
  }

  /** Returns the most calls of one key in any interval of a length. */
  most(lengthUs: number): number {
    if (this.unbounded !== undefined) return Number.POSITIVE_INFINITY
    return Math.max(...this.variants.map(({ curves }) => this.#withBlocks(mostOf(curves, lengthUs), curves, lengthUs)))
  }

  /** Returns the most calls of all keys together. */
  mostOfAll(lengthUs: number): number {
    return this.keys === Number.POSITIVE_INFINITY ? this.keys : this.most(lengthUs) * this.keys
  }

  /** The curves that the calls of one key keep to; none if they differ by caller or are cleared. */
  get curves(): readonly Curve[] {
    const isSure = this.unbounded === undefined && this.variants.length === 1 && !this.compiled.blockClears
    return isSure ? this.variants[0]!.curves : []
  }

  schedule(lengthUs: number): Schedule | undefined {
    if (this.unbounded !== undefined || this.compiled.blockClears) return undefined
    let best: Schedule | undefined
    for (const { compiled, curves } of this.variants) {
      if (mostOf(curves, lengthUs) < this.most(lengthUs)) continue
      best ??= findSchedule(compiled.meters, lengthUs, this.cost, this.#nowUs)
    }
    return best
  }

  #curvesOf({ meters }: CompiledRule): Curve[] {
    return meters.flatMap(meter => curveOf(meter, this.cost, this.#nowUs) ?? [])
  }

  /** Adds the calls after blocks: a block that clears the count lets the limit pass again when it ends. */
  #withBlocks(most: number, curves: readonly Curve[], lengthUs: number): number {
    const { blockMs, blockGrowth, blockClears } = this.compiled
    if (!blockClears || !blockMs) return most
    const burst = Math.max(...curves.map(({ units }) => units))
    const periodUs = Math.max(...this.rule.limits.map(({ periodMs }) => periodMs * 1000))
    const forgetUs = (blockGrowth?.forgetAfterMs ?? Number.POSITIVE_INFINITY) * 1000
    let again = 0
    let blockUs = blockMs * 1000
    // a block that is longer than the period gives nothing that time does not
    for (let passedUs = blockUs; passedUs < lengthUs && blockUs < periodUs && again < 1e6; passedUs += blockUs) {
      again++
      blockUs = Math.min((blockGrowth?.maxMs ?? blockMs) * 1000, blockUs * (blockGrowth?.factor ?? 1))
    }
    return most + burst * again * Math.ceil(lengthUs / Math.min(lengthUs, forgetUs))
  }

  #whyUnbounded(): string | undefined {
    const { rule, compiled } = this
    if (rule.whenFull === 'shadow') return 'whenFull: shadow refuses nothing'
    if (compiled.meters.some(meter => meter.held !== undefined)) {
      return `it bounds calls at one time (${rule.limits[0]!.count}), not calls in a time: short calls can be any number`
    }
    if (rule.resetWhen !== undefined)
      return 'resetWhen: a call that ends so clears the count, and the limit begins again'
    if (rule.countWhen !== undefined) return 'countWhen: calls that end otherwise are refunded, and can be any number'
    if (this.variants.some(({ curves }) => curves.length === 0))
      return `nothing is known of what ${rule.algorithm} admits`
    if (rule.missing === 'skip') return 'missing: skip: a caller who leaves the value out is not limited by it'
    return undefined
  }

  #notesOf({ store, allow }: RuleDocument): string[] {
    const { rule, cost } = this
    const notes: string[] = []
    if (cost !== 1) notes.push(`each call costs ${cost}`)
    else if (rule.cost !== undefined)
      notes.push('numbers are permits: the cost of a call differs, and a call of cost 1 is assumed')
    if (rule.match.websocket !== undefined) notes.push('numbers are messages of WebSockets, not calls')
    if (rule.credit) notes.push('credit: permits that are granted come on top')
    if (rule.plans?.from !== undefined || rule.plans?.overrides)
      notes.push('limits from outside the file are not part of the numbers')
    if (rule.allow !== undefined || allow !== undefined) notes.push('callers on an allow list are not limited')
    if (
      rule.missing === 'address' ||
      (rule.missing === undefined && rule.by.some(name => name === 'account' || name === 'device'))
    ) {
      notes.push('a caller without the value is counted by address, apart from those who have it')
    }
    if (store !== undefined && rule.count === 'distributed') {
      if (rule.whenStoreDown === 'allow') notes.push('while the store is down, nothing is refused')
      if (rule.whenStoreDown === 'local') notes.push('while the store is down, each process admits as much')
    }
    if (rule.block !== undefined && this.compiled.blockClears)
      notes.push('a block clears the count: the limit begins again when it ends')
    if (typeof rule.cost === 'object' && rule.cost.settle !== undefined)
      notes.push('costs are settled later: what was used beyond the limit is a debt')
    return notes
  }
}

export function amounts(most: (lengthUs: number) => number): Amounts {
  const entries = intervals.map(name => {
    const amount = most(INTERVALS[name])
    return [name, Number.isFinite(amount) ? amount : null]
  })
  return Object.fromEntries(entries) as Amounts
}
