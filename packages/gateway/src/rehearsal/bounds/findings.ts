import type { RuleDocument } from 'diana-limiter'
import { inWords } from '../coverage/coverage.ts'
import { type Curve, mostOf, neverRefuses } from './curve.ts'
import type { BoundedRule } from './rule-bounds.ts'
import type { CallClass } from './sample-calls.ts'

/** Something about a rule that its author may not have meant. */
export interface Finding {
  readonly kind: 'never-matches' | 'never-refuses' | 'shadowed' | 'plan-stricter' | 'free-key'
  readonly rule: string
  readonly message: string
  /** False if the finding may well be intended. */
  readonly isFault: boolean
}

/** Rules that have no effect, and limits that callers can avoid. */
export function findingsOf(
  document: RuleDocument,
  rules: readonly BoundedRule[],
  classes: readonly CallClass[],
): Finding[] {
  const byId = new Map(rules.map(one => [one.rule.id, one]))
  return document.rules.flatMap((rule): Finding[] => {
    const { id } = rule
    const one = byId.get(id)
    if (one === undefined) return []
    if (rule.match.none) return planFindings(one)
    const own = classes.filter(({ rules: met }) => met.some(other => other.id === id))
    if (own.length === 0) {
      const message = 'no call can meet it: check match, and the lists of callers that it and the file allow'
      return [{ kind: 'never-matches', rule: id, message, isFault: true }]
    }
    const groups = own.map(({ rules: met }) => met.flatMap(other => byId.get(other.id) ?? []))
    return [...refusalFindings(one, groups), ...planFindings(one), ...keyFindings(one, groups)]
  })
}

function refusalFindings(one: BoundedRule, groups: readonly (readonly BoundedRule[])[]): Finding[] {
  const { rule } = one
  if (rule.whenFull === 'shadow') {
    const message = 'it can never refuse a call: whenFull: shadow only reports'
    return [{ kind: 'never-refuses', rule: rule.id, message, isFault: false }]
  }
  const stricter = groups.map(group => shadowOf(one, group))
  const [first] = stricter
  if (first !== undefined && stricter.every(names => names !== undefined)) {
    const names = [...new Set(stricter.flat())].map(name => `"${name}"`).join(' and ')
    const message = `it can never refuse a call: ${names} ${names.includes(' and ') ? 'refuse' : 'refuses'} earlier, or as early, whatever comes`
    return [{ kind: 'shadowed', rule: rule.id, message, isFault: true }]
  }
  return levelFindings(one)
}

/** Returns the rules that always refuse before this one, among those that meet the same calls; undefined if there are none. */
function shadowOf(one: BoundedRule, group: readonly BoundedRule[]): string[] | undefined {
  const { rule, variants } = one
  if (typeof rule.cost === 'object' || one.compiled.meters.some(meter => meter.held !== undefined)) return undefined
  const coarser = group.filter(other => other !== one && isCoarser(other, one))
  const isShadowedBy = (curves: readonly Curve[]): boolean =>
    variants.every(({ curves: own, compiled }) => {
      return own.length === compiled.meters.length && own.every(curve => neverRefuses(curve, curves))
    })
  const single = coarser.find(({ curves }) => isShadowedBy(curves))
  if (single !== undefined) return [single.rule.id]
  const all = coarser.flatMap(({ curves }) => curves)
  return coarser.length > 1 && isShadowedBy(all) ? coarser.map(other => other.rule.id) : undefined
}

/** True if a rule counts at least all the calls that another one counts under one key, and refuses what exceeds its limit. */
function isCoarser({ rule: other, curves }: BoundedRule, { rule }: BoundedRule): boolean {
  if (curves.length === 0 || other.whenFull !== 'refuse' || other.allow !== undefined) return false
  if (typeof other.cost === 'object' || (other.cost === undefined) !== (rule.cost === undefined)) return false
  if (other.credit) return false
  const isPart = other.by.every(name => rule.by.includes(name))
  return isPart && (other.by.length === 0 || other.missing === rule.missing)
}

/** Limits of one rule that the others of it make useless. */
function levelFindings({ rule, variants }: BoundedRule): Finding[] {
  const [{ curves } = { curves: [] as readonly Curve[] }] = variants
  if (rule.limits.length < 2 || curves.length !== rule.limits.length) return []
  return rule.limits.flatMap((limit, level): Finding[] => {
    const others = curves.filter((_, other) => other !== level)
    if (!neverRefuses(curves[level]!, others)) return []
    const message = `its ${inWords(limit)} can never refuse a call: its other limits refuse earlier, or as early`
    return [{ kind: 'shadowed', rule: rule.id, message, isFault: true }]
  })
}

/** Names of plans from the cheapest to the dearest, as most services call them. */
const USUAL_ORDER = [
  ...[
    'anonymous',
    'guest',
    'trial',
    'free',
    'hobby',
    'basic',
    'starter',
    'standard',
    'plus',
    'team',
    'pro',
    'professional',
  ],
  ...['business', 'premium', 'gold', 'platinum', 'enterprise', 'unlimited'],
]

/** Plans that admit less than a cheaper one in some interval. */
function planFindings({ rule, variants, unbounded }: BoundedRule): Finding[] {
  const plans = variants.filter(({ curves }) => curves.length > 0 && mostOf(curves, 86_400e6) > 0)
  if (rule.plans === undefined || unbounded !== undefined) return []
  const found: Finding[] = []
  for (const [index, one] of plans.entries()) {
    for (const other of plans.slice(index + 1)) {
      if (one.name === undefined) continue
      const [ranks, otherRank] = [
        USUAL_ORDER.indexOf(one.name.toLowerCase()),
        USUAL_ORDER.indexOf(other.name!.toLowerCase()),
      ]
      const isKnown = ranks >= 0 && otherRank >= 0
      const [cheap, dear] = isKnown && otherRank < ranks ? [other, one] : [one, other]
      const lengths = [
        1e6,
        60e6,
        3600e6,
        86_400e6,
        ...cheap.curves.map(({ periodUs }) => Math.ceil(periodUs)),
        ...dear.curves.map(({ periodUs }) => Math.ceil(periodUs)),
      ]
      const usable = lengths.filter(us => us > 0 && Number.isFinite(us)).sort((a, b) => a - b)
      const less = usable.find(us => mostOf(dear.curves, us) < mostOf(cheap.curves, us))
      const more = usable.find(us => mostOf(dear.curves, us) > mostOf(cheap.curves, us))
      // a list from the dearest to the cheapest is no mistake
      if (less === undefined || (!isKnown && more === undefined)) continue
      const [a, b] = [mostOf(dear.curves, less), mostOf(cheap.curves, less)]
      const message = `plan ${dear.name} is stricter than plan ${cheap.name}: in ${lengthInWords(less)} it admits ${a} calls, and ${cheap.name} ${b}`
      found.push({ kind: 'plan-stricter', rule: rule.id, message, isFault: true })
    }
  }
  return found
}

function keyFindings({ rule, free, unbounded }: BoundedRule, groups: readonly (readonly BoundedRule[])[]): Finding[] {
  const [first] = free
  if (first === undefined || unbounded !== undefined) return []
  const isOpen = groups.some(group => !group.some(other => other.unbounded === undefined && other.free.length === 0))
  const rest = isOpen ? 'and nothing else bounds these calls' : 'and only other rules bound these calls'
  const message = `a caller can choose its key: ${first.why}; each value has a count of its own, ${rest}`
  return [{ kind: 'free-key', rule: rule.id, message, isFault: isOpen }]
}

const LENGTHS: readonly (readonly [number, string])[] = [
  [1e6, 'a second'],
  [60e6, 'a minute'],
  [3600e6, 'an hour'],
  [86_400e6, 'a day'],
]

export function lengthInWords(us: number): string {
  const named = LENGTHS.find(([length]) => length === us)
  if (named !== undefined) return named[1]
  return us % 1e6 === 0 ? `${us / 1e6} s` : `${us / 1000} ms`
}
