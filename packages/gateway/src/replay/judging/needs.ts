import type { RuleDocument } from 'diana-limiter'

type Rule = RuleDocument['rules'][number]

/** A rule that a log says too little for. */
export interface Unjudged {
  readonly id: string
  /** The fields that the rule needs and the log does not have. */
  readonly missing: readonly string[]
}

/** Rules that need something that the log does not have. `known` are the fields of the log. */
export function findUnjudged(document: RuleDocument, known: ReadonlySet<string>): Unjudged[] {
  return document.rules.flatMap(rule => {
    if (!rule.enabled) return []
    const missing = new Set<string>()
    for (const alternatives of needsOf(rule, document)) {
      if (!alternatives.some(name => isKnown(name, known))) missing.add(alternatives.join(' or '))
    }
    return missing.size === 0 ? [] : [{ id: rule.id, missing: [...missing] }]
  })
}

/** Returns what a rule reads of a call: of each list, one is enough. */
function needsOf(rule: Rule, document: RuleDocument): string[][] {
  const needs = rule.by.map(name => alternativesOf(name, document))
  const { host, header } = rule.match
  if (host !== undefined) needs.push(['host'])
  for (const name of Object.keys(header ?? {})) needs.push([`header:${name.toLowerCase()}`])
  for (const list of [rule.allow, rule.deny, document.allow, document.deny]) {
    for (const name of Object.keys(list ?? {})) needs.push(alternativesOf(name, document))
  }
  if (typeof rule.cost === 'object' && rule.cost.from !== undefined)
    needs.push(alternativesOf(rule.cost.from, document))
  if (typeof rule.cost === 'object' && (rule.cost.reserve ?? rule.cost.settle) !== undefined) needs.push(['body'])
  if (rule.countWhen !== undefined || rule.resetWhen !== undefined) needs.push(['status'])
  if (rule.limits.every(({ periodMs }) => periodMs === 0)) needs.push(['duration'])
  return needs
}

function alternativesOf(name: string, { identify }: RuleDocument): string[] {
  const sources = Object.hasOwn(identify, name) ? identify[name]! : [name]
  return [`attribute:${name}`, ...sources.map(fieldOf)]
}

/** Returns the field of a log in which a dimension is found. */
function fieldOf(name: string): string {
  if (name === 'resource' || name === 'method' || name.startsWith('query:')) return 'path'
  if (name.startsWith('jwt:')) return 'header:authorization'
  return name.startsWith('header:') ? name.toLowerCase() : name
}

function isKnown(name: string, known: ReadonlySet<string>): boolean {
  if (known.has(name)) return true
  if (name.startsWith('attribute:')) return known.has('attributes')
  if (name.startsWith('header:')) return known.has('headers')
  return name.startsWith('cookie:') && (known.has('headers') || known.has('header:cookie'))
}
