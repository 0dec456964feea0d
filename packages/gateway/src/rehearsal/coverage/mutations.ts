import { formatDuration, type Limit, type Rule, type RuleDocument } from 'diana-limiter'
import { inWords } from './coverage.ts'

/** A document with one change. */
export interface Mutation {
  readonly rule: string
  /** The change in words: `limit 100/m becomes 101/m`. */
  readonly what: string
  readonly document: RuleDocument
}

type Changed = readonly [what: string, rule: Rule]

const NEXT_UNIT = { day: 'week', week: 'month', month: 'year', year: 'month' } as const
const UNIT_MS = { day: 86_400_000, week: 604_800_000, month: 31 * 86_400_000, year: 366 * 86_400_000 } as const

/** Returns every rule with one limit, period, dimension, match or other option changed. */
export function mutationsOf(document: RuleDocument): Mutation[] {
  return document.rules.flatMap((rule, index) => {
    if (!rule.enabled) return []
    return changesOf(rule).map(([what, changed]) => {
      return { rule: rule.id, what, document: { ...document, rules: document.rules.with(index, changed) } }
    })
  })
}

function changesOf(rule: Rule): Changed[] {
  const { limits, plans } = rule
  const changes: Changed[] = []
  limits.forEach((limit, level) => {
    for (const one of limitsBeside(limit)) {
      const label = plans === undefined ? inWords(limit) : `default ${inWords(limit)}`
      changes.push([
        `${label} becomes ${inWords(one).slice('limit '.length)}`,
        { ...rule, limits: limits.with(level, one) },
      ])
    }
  })
  for (const [name, terms] of Object.entries(plans?.values ?? {})) {
    const withTerms = (values: Record<string, typeof terms>): Rule => ({ ...rule, plans: { ...plans!, values } })
    for (const limit of limitsBeside(terms.limit)) {
      const what = `plan ${name}: ${inWords(terms.limit)} becomes ${inWords(limit).slice('limit '.length)}`
      changes.push([what, withTerms({ ...plans!.values, [name]: { ...terms, limit } })])
    }
  }
  return [...changes, ...optionsBeside(rule), ...dimensionsBeside(rule), ...matchesBeside(rule), ...without(rule)]
}

function limitsBeside(limit: Limit): Limit[] {
  const { count, periodMs, unit } = limit
  const others: Limit[] = [{ ...limit, count: count + 1 }]
  if (count > 1) others.push({ ...limit, count: count - 1 })
  if (periodMs === 0 || count === 0) return others
  if (unit !== undefined) return [...others, { ...limit, unit: NEXT_UNIT[unit], periodMs: UNIT_MS[NEXT_UNIT[unit]] }]
  return [
    ...others,
    { ...limit, periodMs: periodMs * 2 },
    ...(periodMs % 2 === 0 ? [{ ...limit, periodMs: periodMs / 2 }] : []),
  ]
}

function optionsBeside(rule: Rule): Changed[] {
  const { burst, warmUp } = rule.options
  const set = (name: string, value: number): Rule => ({ ...rule, options: { ...rule.options, [name]: value } })
  const changes: Changed[] = []
  if (typeof burst === 'number') {
    changes.push([`burst ${burst} becomes ${burst + 1}`, set('burst', burst + 1)])
    if (burst > 1) changes.push([`burst ${burst} becomes ${burst - 1}`, set('burst', burst - 1)])
  }
  if (typeof warmUp === 'number') {
    changes.push([`warmUp ${formatDuration(warmUp)} becomes ${formatDuration(warmUp * 2)}`, set('warmUp', warmUp * 2)])
  }
  return changes
}

function dimensionsBeside(rule: Rule): Changed[] {
  const { by } = rule
  const fewer = by.map(
    (name, index): Changed => [`by loses ${name}`, { ...rule, by: by.filter((_, other) => other !== index) }],
  )
  return by.includes('ip') ? fewer : [...fewer, ['by gains ip', { ...rule, by: [...by, 'ip'] }]]
}

function matchesBeside(rule: Rule): Changed[] {
  const { match } = rule
  const changes: Changed[] = []
  const set = (what: string, changed: Rule['match']): void => void changes.push([what, { ...rule, match: changed }])
  for (const part of ['path', 'method', 'host'] as const) {
    const values = match[part]
    if (values === undefined) continue
    const { [part]: _, ...rest } = match
    set(`match loses ${part}`, rest)
    if (values.length < 2) continue
    for (const value of values)
      set(`match.${part} loses ${value}`, { ...match, [part]: values.filter(one => one !== value) })
  }
  for (const part of ['header', 'attribute'] as const) {
    for (const name of Object.keys(match[part] ?? {})) {
      const { [name]: _, ...rest } = match[part]!
      const { [part]: __, ...others } = match
      set(`match loses ${part} ${name}`, Object.keys(rest).length === 0 ? others : { ...match, [part]: rest })
    }
  }
  return changes
}

/** Returns the rule with one option left out, and the rule switched off. */
function without(rule: Rule): Changed[] {
  const changes: Changed[] = []
  for (const name of ['countWhen', 'resetWhen', 'block', 'allow', 'deny', 'cost'] as const) {
    if (rule[name] === undefined) continue
    const { [name]: _, ...rest } = rule
    changes.push([`${name} is left out`, rest as Rule])
  }
  if (rule.whenFull === 'wait')
    changes.push(['whenFull becomes refuse', { ...rule, whenFull: 'refuse', queue: { size: 0 } }])
  if (rule.whenFull === 'shadow') changes.push(['whenFull becomes refuse', { ...rule, whenFull: 'refuse' }])
  else changes.push(['the rule is off', { ...rule, enabled: false }])
  return changes
}
