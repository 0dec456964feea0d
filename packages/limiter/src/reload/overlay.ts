import type { Rule } from '../rules/rule.ts'

/** Local rules, replaced by remote ones with the same id, and followed by the other remote rules. */
export function overlay(local: readonly Rule[], remote: readonly Rule[]): Rule[] {
  const winning = new Map(remote.map(rule => [rule.id, rule]))
  const replaced = local.map(rule => winning.get(rule.id) ?? rule)
  const known = new Set(local.map(rule => rule.id))
  return [...replaced, ...remote.filter(rule => !known.has(rule.id))]
}
