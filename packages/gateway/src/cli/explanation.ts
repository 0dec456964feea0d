import { type Call, type Decision, formatDuration, type RuleExplanation, type Verdict } from 'diana-limiter'

/** A call, the rules it meets, and what they say together. */
export interface Explained {
  readonly call: Call
  readonly rules: readonly RuleExplanation[]
  readonly verdict: Verdict
}

export function explainForPeople({ call, rules, verdict }: Explained): string[] {
  const lines = [`${call.method} ${call.path} from ${call.ip}`, '']
  for (const { rule, algorithm, key, decisions } of rules) {
    lines.push(`rule "${rule}" (${algorithm})`)
    const parts = Object.entries(key).map(([name, value]) => keyInWords(name, value))
    lines.push(`  key: ${parts.length === 0 ? 'all calls together' : parts.join('; ')}`)
    for (const decision of decisions) {
      lines.push(`  limit ${limitInWords(decision)}: ${decision.remaining} left, ${decisionInWords(decision)}`)
    }
  }
  if (rules.length === 0) lines.push('no rule is about this call')
  lines.push('', `verdict: ${verdictInWords(verdict)}`)
  return lines
}

export function explainForMachines({ call, rules, verdict }: Explained): string {
  const { method, path, query, ip, headers } = call
  const { allowed, rule, reason, retryAfterMs } = verdict
  const explained = {
    call: { method, path, query, ip, headers },
    rules: rules.map(one => ({ ...one, key: Object.fromEntries(Object.entries(one.key).map(keyValueInWords)) })),
    verdict: { allowed, rule, reason, retryAfterMs },
  }
  return JSON.stringify(explained, null, 2)
}

function keyValueInWords([name, value]: [string, string]): [string, string] {
  return [name, valueInWords(value)]
}

function keyInWords(name: string, value: string): string {
  const isPlain = value.charCodeAt(0) >= 0x20
  return `${name}${isPlain ? '=' : ': '}${valueInWords(value)}`
}

/** In a key, a control character in front marks what is not a value as it came. */
function valueInWords(value: string): string {
  const rest = value.slice(1)
  switch (value.charCodeAt(0)) {
    case 1:
      return printable(rest)
    case 2:
      return `absent, counted by address ${rest}`
    case 3:
      return `a long value, counted by its digest ${rest}`
    case 4:
      return 'absent, counted with all others that lack it'
    default:
      return printable(value)
  }
}

/** A value may hold what a terminal obeys. */
function printable(value: string): string {
  return /[\p{Cc}\p{Cf}]/u.test(value) ? JSON.stringify(value) : value
}

function limitInWords({ limit, periodMs }: Decision): string {
  return periodMs === 0 ? `${limit} at a time` : `${limit}/${formatDuration(periodMs).replace(/^1(?=[a-z])/, '')}`
}

function decisionInWords({ allowed, shadow, retryAfterMs }: Decision): string {
  if (allowed) return 'would pass'
  const until = retryAfterMs === Number.POSITIVE_INFINITY ? '' : ` for ${Math.ceil(retryAfterMs)} ms`
  return shadow ? 'would be reported but not refused' : `would be refused${until}`
}

function verdictInWords({ allowed, rule, answer }: Verdict): string {
  return allowed ? 'the call would pass' : `rule "${rule}" would refuse the call with status ${answer.status}`
}
