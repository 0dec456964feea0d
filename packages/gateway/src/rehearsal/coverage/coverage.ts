import { type Call, formatDuration, type Limit, type Rule, type RuleDocument, type Verdict } from 'diana-limiter'
import { type CompiledRule, createReplayLimiter, type ReplayLimiter } from 'diana-limiter/gateway'
import type { Place } from '../cases/case-file.ts'
import type { RuleSet } from '../run/rule-set.ts'
import type { CallObserver } from '../run/run-case.ts'

/** Something that a rule can do, and whether a case has seen it. */
export interface Branch {
  readonly rule: string
  readonly place: Place | undefined
  /** Completes "no case": `in which a call meets it`. */
  readonly what: string
  reached: boolean
}

/** Records the rules, levels, plans and answers that the calls of cases reach. */
export class Coverage implements CallObserver {
  readonly rules: string
  readonly #branches = new Map<string, Branch>()
  readonly #set: RuleSet
  readonly #byId: ReadonlyMap<string, Rule>
  /** These rules without lists of callers who are exempt. */
  #bare: ReplayLimiter | undefined
  readonly #endings = new Map<Verdict, readonly string[]>()

  constructor(set: RuleSet) {
    this.rules = set.file
    this.#set = set
    this.#byId = new Map(set.document.rules.map(rule => [rule.id, rule]))
    for (const rule of set.document.rules) if (rule.enabled) this.#addRule(rule)
    if (set.document.allow) this.#add('', 'allowed', 'in which a caller is on the allow list of the file')
    if (set.document.deny) this.#add('', 'denied', 'in which a caller is on the deny list of the file')
  }

  /** Prepares the limiter; must be called before the first case. */
  async open(): Promise<void> {
    const { document, extensions } = this.#set
    const rules = document.rules.map(({ allow: _, deny: __, ...rule }) => rule)
    const { allow: _, deny: __, ...rest } = document
    this.#bare = await createReplayLimiter({ ...rest, rules } as RuleDocument, { extensions, clock: () => 0 })
    await this.#bare.limiter.close()
  }

  onCall(call: Call, verdict: Verdict, process: ReplayLimiter): void {
    const met = new Set<string>()
    let level = 0
    for (const decision of verdict.decisions) {
      level = met.has(decision.rule) ? level + 1 : 0
      met.add(decision.rule)
      this.#reach(decision.rule, 'met')
      if (!decision.allowed) this.#reach(decision.rule, `refuses ${level}`)
      if (verdict.waitMs > 0) this.#reach(decision.rule, 'waits')
    }
    for (const rule of process.rules) if (met.has(rule.id)) this.#reachPlan(rule, call)
    const { rule = '', reason } = verdict
    if (reason === 'blocked' || reason === 'denied') this.#reach(rule, reason)
    if (reason === 'timeout' || reason === 'queue-full') this.#reach(rule, reason)
    this.#reachExempt(call, process, met, reason)
    if (verdict.allowed && verdict.holds) this.#endings.set(verdict, [...met])
  }

  onEnd(verdict: Verdict, status: number): void {
    for (const id of this.#endings.get(verdict) ?? []) {
      const rule = this.#byId.get(id)
      const isIn = (ranges: Rule['countWhen']): boolean =>
        ranges?.some(([least, most]) => status >= least && status <= most) ?? false
      if (rule?.countWhen) this.#reach(id, isIn(rule.countWhen) ? 'counts' : 'refunds')
      if (rule?.resetWhen && isIn(rule.resetWhen)) this.#reach(id, 'resets')
    }
    this.#endings.delete(verdict)
  }

  result(): { readonly branches: number; readonly missed: readonly Branch[] } {
    const all = [...this.#branches.values()]
    return { branches: all.length, missed: all.filter(({ reached }) => !reached) }
  }

  #addRule(rule: Rule): void {
    const { id, limits, whenFull, plans, block, allow, deny, countWhen, resetWhen } = rule
    this.#add(id, 'met', 'in which a call meets it')
    const verb = whenFull === 'shadow' ? 'would refuse' : 'refuses'
    limits.forEach((limit, level) => {
      if (plans === undefined || level > 0)
        this.#add(id, `refuses ${level}`, `in which ${inWords(limit)} ${verb} a call`)
    })
    if (plans !== undefined) {
      this.#add(id, 'refuses 0', `in which a plan ${verb} a call`)
      for (const name of Object.keys(plans.values))
        this.#add(id, `plan ${name}`, `in which a caller has the plan ${name}`)
      this.#add(id, 'plan', 'in which a caller has the default limit')
    }
    if (whenFull === 'wait') this.#add(id, 'waits', 'in which a call waits')
    if (block !== undefined && block !== 'manual') this.#add(id, 'blocked', 'in which a caller is blocked')
    if (allow !== undefined) this.#add(id, 'allowed', 'in which a caller is on its allow list')
    if (deny !== undefined) this.#add(id, 'denied', 'in which a caller is on its deny list')
    if (countWhen !== undefined) {
      this.#add(id, 'counts', 'in which a call counts by how it ended')
      this.#add(id, 'refunds', 'in which a call does not count by how it ended')
    }
    if (resetWhen !== undefined) this.#add(id, 'resets', 'in which a call clears the count')
  }

  #add(rule: string, name: string, what: string): void {
    this.#branches.set(`${rule} ${name}`, {
      rule,
      place: rule === '' ? undefined : this.#set.placeOf(rule),
      what,
      reached: false,
    })
  }

  #reach(rule: string, name: string): void {
    const branch = this.#branches.get(`${rule} ${name}`)
    if (branch !== undefined) branch.reached = true
  }

  #reachPlan({ id, plans }: CompiledRule, call: Call): void {
    if (plans === undefined) return
    const value = plans.read?.(call)
    this.#reach(id, value !== undefined && plans.values.has(value) ? `plan ${value}` : 'plan')
  }

  #reachExempt(call: Call, process: ReplayLimiter, met: ReadonlySet<string>, reason: Verdict['reason']): void {
    if (this.#bare === undefined || reason !== undefined) return
    const found: CompiledRule[] = []
    const size = this.#bare.select(call, found)
    for (let i = 0; i < size; i++) {
      const { id } = found[i]!
      if (met.has(id)) continue
      const rule = process.rules.find(one => one.id === id)
      if (rule?.exempts?.(call)) this.#reach(id, 'allowed')
      else this.#reach('', 'allowed')
    }
  }
}

/** Writes a limit as the rule file has it. */
export function inWords({ count, periodMs, unit }: Limit): string {
  if (periodMs === 0) return `limit ${count}`
  return `limit ${count}/${unit ?? formatDuration(periodMs).replace(/^1(?=[a-z])/, '')}`
}
