import type { RuleDocument } from 'diana-limiter'
import { formatDuration } from 'diana-limiter'
import type { Callers } from '../figures/callers.ts'
import type { RuleFigures } from '../figures/figures.ts'
import { nameOf } from '../report/report.ts'

/** A limit that fits what callers have done. */
export interface Suggestion {
  readonly id: string
  readonly by: readonly string[]
  readonly period: string
  readonly callers: number
  /** The highest number of calls of each caller in any period. */
  readonly peaks: {
    readonly p50: number
    readonly p90: number
    readonly p99: number
    readonly p999: number
    readonly max: number
  }
  readonly limit: number
  readonly reason: string
  readonly confidence: 'high' | 'medium' | 'low'
  readonly confidenceReason: string
  /** Callers above the suggested limit. */
  readonly outliers: readonly { readonly caller: string; readonly peak: number; readonly calls: number }[]
}

const MOST_OUTLIERS = 10
/** A gap in the peaks by this factor separates abusers from the others. */
const KNEE = 3

/** Suggests a limit for each rule from the peaks of its callers. */
export function suggestLimits(rules: readonly RuleFigures[], days: number): Suggestion[] {
  return rules.flatMap(figures => {
    const [{ periodMs, unit } = { periodMs: 0 }] = figures.rule.limits
    // calls under way have no period
    if (periodMs === 0 || figures.calls === 0) return []
    return [suggestLimit(figures, unit ?? formatDuration(periodMs), days)]
  })
}

function suggestLimit({ rule, callers }: RuleFigures, period: string, days: number): Suggestion {
  const peaks = callers.peaks.sorted()
  const count = peaks.reduce((sum, [, times]) => sum + times, 0)
  const calm = rule.by.length === 0 ? peaks : withoutOutliers(peaks, count)
  const calmCount = calm.reduce((sum, [, times]) => sum + times, 0)
  const at = (share: number): number => percentile(peaks, count, share)
  const [p99, p999] = [percentile(calm, calmCount, 0.99), percentile(calm, calmCount, 0.999)]
  const spread = deviation(calm, calmCount)
  const base = rule.by.length === 0 ? Math.ceil(at(1) * 1.5) : Math.max(p999, Math.ceil(p99 + 3 * spread))
  const limit = roundUp(base)
  return {
    ...{ id: rule.id, by: rule.by, period, callers: count, limit },
    peaks: { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: at(1) },
    reason: reasonOf(rule.by.length === 0, { p99, p999, spread, base, limit, left: count - calmCount }),
    ...confidenceOf(rule.by.length === 0 ? days * 100 : count, days),
    outliers: rule.by.length === 0 ? [] : outliersOf(callers, limit, rule),
  }
}

type Peaks = readonly (readonly [peak: number, callers: number])[]

/** Leaves out the highest peaks beyond a gap, if they are few: they are not what the limit should allow. */
function withoutOutliers(peaks: Peaks, count: number): Peaks {
  let above = 0
  for (let at = peaks.length - 1; at > 0; at--) {
    above += peaks[at]![1]
    if (above > Math.max(3, count * 0.02)) return peaks
    if (peaks[at]![0] >= KNEE * peaks[at - 1]![0] && peaks[at]![0] >= 10) {
      // several groups of abusers may have peaks of different heights
      return withoutOutliers(peaks.slice(0, at), count - above)
    }
  }
  return peaks
}

function percentile(peaks: Peaks, count: number, share: number): number {
  let seen = 0
  for (const [peak, times] of peaks) {
    seen += times
    if (seen >= share * count) return peak
  }
  return peaks.at(-1)?.[0] ?? 0
}

/** Returns the median distance from the median. */
function deviation(peaks: Peaks, count: number): number {
  const median = percentile(peaks, count, 0.5)
  const distances = peaks.map(([peak, times]) => [Math.abs(peak - median), times] as const).sort(([a], [b]) => a - b)
  return percentile(distances, count, 0.5)
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  for (const step of [1, 2, 5]) if (value <= step * power) return step * power
  return 10 * power
}

function reasonOf(
  isGlobal: boolean,
  {
    p99,
    p999,
    spread,
    base,
    limit,
    left,
  }: { p99: number; p999: number; spread: number; base: number; limit: number; left: number },
): string {
  if (isGlobal) return `one and a half times the highest peak is ${base}, rounded up to ${limit}`
  const without = left === 0 ? '' : `; ${countOf(left, 'caller')} far above the others left out`
  return `the higher of p99.9 (${p999}) and p99 + 3 median deviations (${p99} + 3 · ${spread}) is ${base}, rounded up to ${limit}${without}`
}

function confidenceOf(callers: number, days: number): Pick<Suggestion, 'confidence' | 'confidenceReason'> {
  const samples = callers * Math.max(days, 1 / 24)
  const confidence = callers >= 100 && days >= 7 ? 'high' : samples >= 100 && days >= 1 ? 'medium' : 'low'
  const text = `${Math.round(callers)} callers over ${days < 1 ? countOf(Math.max(1, Math.round(days * 24)), 'hour') : `${days.toFixed(1)} days`}`
  return {
    confidence,
    confidenceReason: confidence === 'high' ? text : `${text}; a week of 100 callers or more says more`,
  }
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

function outliersOf(callers: Callers, limit: number, rule: RuleFigures['rule']): Suggestion['outliers'] {
  const above: { caller: string; peak: number; calls: number }[] = []
  for (const { key, peak, calls } of callers.all())
    if (peak > limit) above.push({ caller: nameOf(key, rule), peak, calls })
  return above.sort((a, b) => b.peak - a.peak).slice(0, MOST_OUTLIERS)
}

/** Returns a rule file with the suggested limits, in shadow: nothing is refused by it yet. */
export function suggestedFile(suggestions: readonly Suggestion[], document: RuleDocument): string {
  const lines = [
    '# Suggested by diana replay. In shadow: counted and reported, never refused. Remove whenFull to enforce a rule.',
  ]
  const { identify, trustProxy, forwardedBy } = document
  if (Object.keys(identify).length > 0) lines.push(`identify: ${JSON.stringify(identify)}`)
  if (trustProxy !== 0) lines.push(`trustProxy: ${JSON.stringify(trustProxy)}`)
  if (forwardedBy !== 'x-forwarded-for') lines.push(`forwardedBy: ${forwardedBy}`)
  lines.push('rules:')
  for (const { id, by, limit, period, reason, confidence, confidenceReason } of suggestions) {
    const rule = document.rules.find(one => one.id === id)
    lines.push(`  # ${reason}; confidence ${confidence}: ${confidenceReason}`, `  - id: ${JSON.stringify(id)}`)
    const match = Object.entries(rule?.match ?? {}).filter(([, value]) => value !== undefined)
    if (match.length > 0) lines.push(`    match: ${JSON.stringify(Object.fromEntries(match))}`)
    if (by.length > 0) lines.push(`    by: ${JSON.stringify(by)}`)
    lines.push(`    limit: ${limit}/${period}`, '    whenFull: shadow')
  }
  return `${lines.join('\n')}\n`
}

/** Suggestions as lines for a terminal. */
export function suggestionLines(suggestions: readonly Suggestion[]): string[] {
  return suggestions.flatMap(
    ({ id, by, period, callers, peaks, limit, reason, confidence, confidenceReason, outliers }) => [
      '',
      `rule ${id}${by.length === 0 ? '' : ` by ${by.join(', ')}`}: suggested limit ${limit}/${period}`,
      `  peaks in any ${period} of ${callers} callers: p50 ${peaks.p50}, p90 ${peaks.p90}, p99 ${peaks.p99}, p99.9 ${peaks.p999}, max ${peaks.max}`,
      `  why: ${reason}`,
      `  confidence: ${confidence} (${confidenceReason})`,
      ...outliers.map(({ caller, peak, calls }) => `  above it: ${caller}, peak ${peak}, ${calls} calls`),
    ],
  )
}
