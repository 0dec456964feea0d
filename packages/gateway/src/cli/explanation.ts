import {
  type Call,
  type CallerStanding,
  type Decision,
  formatDuration,
  type KeyPart,
  type Limit,
  type RuleExplanation,
  type Verdict,
} from 'diana-limiter'
import type { RuleMiss } from 'diana-limiter/admin'

/** A call, the rules it meets, and what they say together. */
export interface Explained {
  readonly call: Call
  readonly rules: readonly RuleExplanation[] & { readonly caller: readonly CallerStanding[] }
  readonly verdict: Verdict
  readonly misses: readonly RuleMiss[]
}

const mostMisses = 100

export function explainForPeople({ call, rules, verdict, misses }: Explained): string[] {
  const lines = [`${call.method} ${call.path} from ${call.ip}`, '']
  for (const { means } of rules.caller) lines.push(`the caller is ${means}`)
  for (const { rule, algorithm, key, limits, burst, estimate, decisions, leased } of rules) {
    lines.push(`rule "${rule}" (${algorithm})`)
    const parts = Object.entries(key).map(([name, part]) => keyInWords(name, part))
    lines.push(`  key: ${parts.length === 0 ? 'all calls together' : parts.join('; ')}`)
    if (estimate) lines.push(`  found: ${estimateInWords(estimate)}`)
    for (const [level, decision] of decisions.entries()) {
      lines.push(
        `  limit ${limitInWords(limits[level], burst)}: ${decision.remaining} left, ${decisionInWords(decision)}`,
      )
    }
    if (leased !== undefined) lines.push(`  leased: this process holds ${leased} permits of this key in advance`)
  }
  if (rules.length === 0 && verdict.allowed && rules.caller.length === 0) lines.push('no rule matches this call')
  // a caller on a list of all rules: a line above says already why no rule matters
  const isListed = rules.caller.some(({ rule }) => rule === undefined)
  if (!isListed) lines.push(...missesForPeople(misses))
  lines.push('', `verdict: ${verdictInWords(verdict)}`)
  return lines
}

function estimateInWords({
  limit,
  inFlight,
  perSecond,
  baseMs,
  limiting,
}: NonNullable<RuleExplanation['estimate']>): string {
  if (perSecond === 0) return `nothing yet; up to ${limit} at one time`
  const state = limiting ? 'the service is overloaded' : 'the service keeps up'
  const figures = `${Math.round(perSecond)} answers a second of ${baseMs.toFixed(1)} ms`
  return `${limit} at one time (${inFlight} now), from ${figures}; ${state}`
}

function missesForPeople(misses: readonly RuleMiss[]): string[] {
  const lines = misses.length > 0 ? ['', 'rules that do not match:'] : []
  for (const { rule, reason } of misses.slice(0, mostMisses)) lines.push(`  "${rule}": ${printable(reason)}`)
  if (misses.length > mostMisses) lines.push(`  and ${misses.length - mostMisses} more`)
  return lines
}

export function explainForMachines({ call, rules, verdict, misses }: Explained): string {
  const { method, path, query, ip, headers } = call
  const { allowed, rule, reason, retryAfterMs } = verdict
  const explained = {
    call: { method, path, query, ip, headers },
    caller: rules.caller,
    rules,
    misses,
    verdict: { allowed, rule, reason, retryAfterMs },
  }
  return JSON.stringify(explained, null, 2)
}

function keyInWords(name: string, { countedBy, value }: KeyPart): string {
  switch (countedBy) {
    case 'value':
      return `${name}=${printable(value)}`
    case 'digest':
      return `${name}: a long value, counted by its digest ${value}`
    case 'address':
      return `${name}: absent, counted by address ${value}`
    case 'absence':
      return `${name}: absent, counted with all others that lack it`
  }
}

/** Escapes a value, which may hold what a terminal obeys. */
function printable(value: string): string {
  return /[\p{Cc}\p{Cf}]/u.test(value) ? JSON.stringify(value) : value
}

function limitInWords(limit: Limit | undefined, burst: number | undefined): string {
  const { count, periodMs, unit } = limit!
  if (periodMs === 0) return `${count} at a time`
  const period = unit ?? formatDuration(periodMs).replace(/^1(?=[a-z])/, '')
  return `${count}/${period}${burst === undefined ? '' : `, burst ${burst}`}`
}

function decisionInWords({ allowed, shadow, retryAfterMs }: Decision): string {
  if (allowed) return 'would pass'
  const until = retryAfterMs === Number.POSITIVE_INFINITY ? '' : ` for ${Math.ceil(retryAfterMs)} ms`
  return shadow ? 'would be reported but not refused' : `would be refused${until}`
}

function verdictInWords({ allowed, rule, answer }: Verdict): string {
  if (allowed) return 'the call would pass'
  const who = rule === undefined ? 'the deny list' : `rule "${rule}"`
  return `${who} would refuse the call with status ${answer.status}`
}
