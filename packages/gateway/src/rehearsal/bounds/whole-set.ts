import { mostOf } from './curve.ts'
import type { BoundedRule } from './rule-bounds.ts'
import type { CallClass } from './sample-calls.ts'
import { findSchedule, type Schedule } from './schedule.ts'

/** A class of calls that nothing bounds. */
export interface OpenClass {
  readonly call: string
  readonly why: string
}

type Scope = 'caller' | 'all'

/** The most choices that are compared; after that the first one is taken, which bounds as well, only less tightly. */
const MOST_CHOICES = 20_000

/** All rules, and the calls that they together let pass, of one caller or of all. */
export class WholeSet {
  readonly #classes: readonly (readonly BoundedRule[])[]
  readonly open: OpenClass[] = []
  readonly #scope: Scope
  readonly #nowUs: number

  constructor(classes: readonly CallClass[], rules: readonly BoundedRule[], scope: Scope, nowUs: number) {
    this.#scope = scope
    this.#nowUs = nowUs
    const byId = new Map(rules.map(one => [one.rule.id, one]))
    const bounding: (readonly BoundedRule[])[] = []
    for (const { sample, rules: met } of classes) {
      const own = met.flatMap(({ id }) => {
        const one = byId.get(id)
        return one !== undefined && bounds(one, scope) ? [one] : []
      })
      if (own.length === 0)
        this.open.push({
          call: `${sample.method} ${sample.path}`,
          why: whyOpen(
            met.map(({ id }) => byId.get(id)!),
            scope,
          ),
        })
      bounding.push(own)
    }
    this.#classes = bounding
  }

  /** Returns calls of the class with the fewest rules that get most out of them; undefined if these do not decide alone. */
  schedule(lengthUs: number): Schedule | undefined {
    const [least] = [...this.#classes].sort((one, other) => one.length - other.length)
    const [first] = least ?? []
    if (this.open.length > 0 || first === undefined) return undefined
    const isPlain = (one: BoundedRule): boolean =>
      one.curves.length > 0 && one.cost === first.cost && (this.#scope === 'caller' || one.keys === 1)
    if (!least!.every(isPlain)) return undefined
    return findSchedule(
      least!.flatMap(({ compiled }) => compiled.meters),
      lengthUs,
      first.cost,
      this.#nowUs,
    )
  }

  most(lengthUs: number): number {
    if (this.open.length > 0 || this.#classes.length === 0) return Number.POSITIVE_INFINITY
    const weightOf = (one: BoundedRule): number =>
      this.#scope === 'all' ? one.mostOfAll(lengthUs) : one.most(lengthUs)
    const jointOf = (rules: readonly BoundedRule[]): number => {
      // the limits of rules that count the same calls by as many keys hold together
      const single = rules.filter(one => one.curves.length > 0 && (this.#scope === 'caller' || one.keys === 1))
      return Math.min(
        mostOf(
          single.flatMap(({ curves }) => curves),
          lengthUs,
        ),
        ...rules.map(weightOf),
      )
    }
    // every class of calls is bounded by a rule of it, or by all of its rules together: the cheapest choice
    // those with the fewest rules leave the least choice
    const classes = [...this.#classes].sort((one, other) => one.length - other.length)
    const common = classes[0]!.filter(one => classes.every(rules => rules.includes(one)))
    let least = common.length > 0 ? jointOf(common) : Number.POSITIVE_INFINITY
    let compared = 0
    const choose = (left: readonly (readonly BoundedRule[])[], spent: number): void => {
      if (spent >= least) return
      const [first] = left
      if (first === undefined) {
        least = spent
        return
      }
      const isOver = compared++ > MOST_CHOICES
      const choices = isOver ? first.slice(0, 1) : first
      for (const one of choices) {
        choose(
          left.filter(rules => !rules.includes(one)),
          spent + weightOf(one),
        )
      }
      if (first.length > 1 && !isOver) choose(left.slice(1), spent + jointOf(first))
    }
    choose(classes, 0)
    return least
  }
}

function bounds(one: BoundedRule, scope: Scope): boolean {
  if (one.unbounded !== undefined) return false
  return scope === 'all' ? Number.isFinite(one.keys) : one.free.length === 0
}

function whyOpen(rules: readonly BoundedRule[], scope: Scope): string {
  if (rules.length === 0) return 'no rule matches it'
  return rules.map(one => `rule "${one.rule.id}": ${one.unbounded ?? whyNot(one, scope)}`).join('; ')
}

function whyNot({ rule, free }: BoundedRule, scope: Scope): string {
  const [first] = free
  if (first !== undefined) return `${first.why}, and each value has a count of its own`
  return scope === 'all' ? `each value of ${rule.by.join(' and ')} has a count of its own` : 'it does not bound'
}
