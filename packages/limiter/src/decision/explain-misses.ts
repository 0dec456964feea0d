import type { Call } from '../call.ts'
import { compileMatch } from '../rules/match/match.ts'
import type { Match, Rule } from '../rules/rule.ts'

/** A rule that does not decide a call, and why. */
export interface RuleMiss {
  readonly rule: string
  readonly reason: string
}

/** Why each of these rules does not match a call. */
export function explainMisses(call: Call, rules: readonly Rule[]): RuleMiss[] {
  return rules.map(rule => ({ rule: rule.id, reason: reasonOf(rule, call) }))
}

function reasonOf({ enabled, match }: Rule, call: Call): string {
  if (!enabled) return 'it is off (enabled: false)'
  if (match.none) return 'only calls that name it are counted (match: none)'
  for (const part of ['method', 'host', 'path', 'header', 'attribute'] as const) {
    const only: Match = { [part]: match[part] }
    if (match[part] === undefined || compileMatch([{ match: only }])(call, []) > 0) continue
    if (part === 'header') return `its headers are ${namedValues(match.header)}`
    if (part === 'attribute') return `its attributes are ${namedValues(match.attribute)}`
    return `its ${part} is ${match[part]!.join(', ')}, not ${call[part] ?? 'given'}`
  }
  return 'it lets this caller off (allow, or missing: skip)'
}

function namedValues(values: Match['header'] = {}): string {
  return Object.entries(values)
    .map(([name, values]) => `${name}: ${values.join(' or ')}`)
    .join('; ')
}
