import type { BoundReport, Reached, RuleBound, Schedules } from './bound.ts'
import { lengthInWords } from './findings.ts'
import { type Amounts, INTERVALS, intervals } from './rule-bounds.ts'

const WIDTH = 34
const COLUMN = 14

/** Writes the report for people. */
export function boundLines({ rules, together, findings }: BoundReport): string[] {
  const lines = [`${'the most calls in any'.padEnd(WIDTH)}${intervals.map(name => name.padStart(COLUMN)).join('')}`]
  for (const one of rules) lines.push(...ruleLines(one))
  lines.push('', row('all rules together, one caller', together.oneCaller))
  lines.push(...together.open.oneCaller.slice(0, 3).map(({ call, why }) => `  nothing bounds ${call}: ${why}`))
  lines.push(...scheduleLine(together.schedules.oneCaller))
  lines.push(row('all rules together, all callers', together.allCallers))
  lines.push(...together.open.allCallers.slice(0, 3).map(({ call, why }) => `  nothing bounds ${call}: ${why}`))
  lines.push(...scheduleLine(together.schedules.allCallers))
  const faults = findings.filter(({ isFault }) => isFault)
  const others = findings.filter(({ isFault }) => !isFault)
  if (findings.length > 0) lines.push('')
  for (const { rule, message } of faults) lines.push(`rule "${rule}": ${message}`)
  for (const { rule, message } of others) lines.push(`note: rule "${rule}": ${message}`)
  return lines
}

function ruleLines({ rule, oneCaller, allCallers, unbounded, freeKeys, notes, schedules }: RuleBound): string[] {
  const isSame = intervals.every(name => oneCaller[name] === allCallers[name])
  const lines = ['', row(`rule "${rule}", ${isSame ? 'all calls' : 'one key'}`, oneCaller)]
  if (!isSame) lines.push(row(`${' '.repeat(2)}all keys`, allCallers))
  if (unbounded !== undefined) lines.push(`  no bound: ${unbounded}`)
  for (const { dimension, why } of freeKeys) lines.push(`  ${dimension} can be chosen freely: ${why}`)
  for (const note of notes) lines.push(`  note: ${note}`)
  lines.push(...scheduleLine(schedules))
  return lines
}

/** Writes the schedule of the shortest interval in which there are calls at several moments. */
function scheduleLine(schedules: Schedules): string[] {
  const interval =
    intervals.find(name => (schedules[name]?.bursts.length ?? 0) > 1) ?? intervals.find(name => schedules[name])
  if (interval === undefined) return []
  return [`  in ${lengthInWords(INTERVALS[interval])}: ${scheduleInWords(schedules[interval]!)}`]
}

function row(name: string, amounts: Amounts): string {
  return `${name.padEnd(WIDTH)}${intervals.map(interval => String(amounts[interval] ?? 'no bound').padStart(COLUMN)).join('')}`
}

const MOST_PARTS = 4

/** Bursts of equal size and distance in one phrase. */
export function scheduleInWords({ bursts, calls }: Reached): string {
  const parts: string[] = []
  let at = 0
  while (at < bursts.length && parts.length < MOST_PARTS) {
    const first = bursts[at]!
    let last = at
    const step = bursts[at + 1] === undefined ? 0 : bursts[at + 1]!.atUs - first.atUs
    while (bursts[last + 1]?.calls === first.calls && bursts[last + 1]!.atUs - bursts[last]!.atUs === step) last++
    if (last > at + 1)
      parts.push(`${first.calls} every ${time(step)} from ${time(first.atUs)} to ${time(bursts[last]!.atUs)}`)
    else {
      last = at
      parts.push(`${first.calls} at ${time(first.atUs)}`)
    }
    at = last + 1
  }
  return `${parts.join(', ')}${at < bursts.length ? ', and so on' : ''}: ${calls} calls pass`
}

function time(us: number): string {
  if (us % 1_000_000 === 0) return `${us / 1e6}s`
  return `${us / 1000}ms`
}
