import { describeKey, formatDuration } from 'diana-limiter'
import type { CompiledRule } from 'diana-limiter/gateway'
import type { CallerFigures, Callers } from '../figures/callers.ts'
import { type RuleFigures, refusedBy } from '../figures/figures.ts'
import type { Timeline } from '../figures/timeline.ts'
import { remedyFor } from '../judging/remedies.ts'
import type { Judged, Replayed } from '../replay.ts'
import { notesOf } from './notes.ts'

/** At the least and at the most; equal if the log says it exactly. */
export interface Range {
  readonly least: number
  readonly most: number
}

/** Moments in seconds since 1970; calls, and how many were refused at the least and at the most. */
export type TimelineRow = readonly [at: number, calls: number, least: number, most: number]

export interface TimelineReport {
  readonly binSeconds: number
  readonly rows: readonly TimelineRow[]
}

export interface CallerReport {
  readonly caller: string
  readonly calls: number
  readonly refused: Range
  /** The most calls in any period of the rule's limit. */
  readonly peak: number
  readonly timeline?: TimelineReport | undefined
}

export interface RuleReport {
  readonly id: string
  /** As people read it: `100/m by ip`. */
  readonly text: string
  readonly limit: number
  readonly periodMs: number
  readonly enforced: boolean
  readonly calls: number
  readonly refused: Range
  readonly callers: { readonly count: number; readonly isEstimate: boolean; readonly hit: Range }
  readonly top: readonly CallerReport[]
  readonly worstMinute?: ({ readonly at: string } & Range) | undefined
  readonly timeline: TimelineReport
  /** The number of callers by peak. */
  readonly peaks: readonly (readonly [peak: number, callers: number])[]
  /** For limits around the present one, the share of calls and of callers that would have been refused. */
  readonly curve: readonly (readonly [limit: number, calls: number, callers: number])[]
}

export interface RulesReport {
  readonly calls: number
  readonly refused: Range
  readonly timeline: TimelineReport
  readonly rules: readonly RuleReport[]
  readonly unjudged: readonly { readonly id: string; readonly missing: readonly string[]; readonly remedy: string }[]
}

export interface LogReport {
  readonly files: readonly {
    readonly name: string
    readonly format: string
    readonly lines: number
    readonly bad: number
    readonly badLines: readonly { readonly line: number; readonly text: string }[]
    readonly fault?: string | undefined
  }[]
  readonly lines: number
  readonly bad: number
  readonly from: string | undefined
  readonly to: string | undefined
  /** The precision with which the log says when calls came: `exact`, or a duration such as `1s`. */
  readonly resolution: string
  /** Notes that a reader of the numbers needs. */
  readonly notes: readonly string[]
}

export interface Report extends RulesReport {
  readonly log: LogReport
  /** The report of the rules of `--against`. */
  readonly against?: RulesReport | undefined
}

const TOP = 10

export function reportOf(replayed: Replayed): Report {
  const [judged, before] = replayed.judged
  const format = replayed.logs[0]?.reader?.format ?? ''
  return {
    log: logReport(replayed),
    ...rulesReport(judged!, format),
    ...(before && { against: rulesReport(before, format) }),
  }
}

function logReport(replayed: Replayed): LogReport {
  const files = replayed.logs.map(({ name, reader, lines, bad, badLines, fault }) => {
    return { name, format: reader?.format ?? 'unknown', lines, bad, badLines, ...(fault !== undefined && { fault }) }
  })
  const sum = (of: (file: (typeof files)[number]) => number): number =>
    files.reduce((total, file) => total + of(file), 0)
  const hasCalls = replayed.to >= replayed.from
  return {
    files,
    lines: sum(({ lines }) => lines),
    bad: sum(({ bad }) => bad),
    from: hasCalls ? isoOf(replayed.from) : undefined,
    to: hasCalls ? isoOf(replayed.to) : undefined,
    resolution: replayed.tickUs === 1 ? 'exact' : formatDuration(replayed.tickUs / 1000),
    notes: notesOf(replayed),
  }
}

function rulesReport({ judge, unjudged }: Judged, format: string): RulesReport {
  const { total } = judge
  return {
    calls: total.calls,
    refused: { least: total.least, most: total.most },
    timeline: timelineReport(total.timeline),
    rules: judge.rules.map(ruleReport),
    unjudged: unjudged.map(one => ({ ...one, remedy: remedyFor(one.missing, format) })),
  }
}

function ruleReport(figures: RuleFigures): RuleReport {
  const { rule, callers, timeline } = figures
  const { folded } = callers
  const hit = { least: folded.hitLeast, most: folded.hitMost }
  for (const { least, most } of callers.present()) {
    if (least > 0) hit.least++
    if (most > 0) hit.most++
  }
  const { worst } = timeline
  const [{ count, periodMs } = { count: 0, periodMs: 0 }] = rule.limits
  return {
    id: rule.id,
    text: textOf(rule),
    ...{ limit: count, periodMs, enforced: rule.enforced, calls: figures.calls, refused: refusedBy(figures) },
    callers: { count: callers.count, isEstimate: callers.isEstimate, hit },
    top: topOf(figures),
    worstMinute: worst && { at: isoOf(worst.at), least: worst.least, most: worst.most },
    timeline: timelineReport(timeline),
    peaks: callers.peaks.sorted(),
    curve: refusalCurve(callers, count),
  }
}

function topOf({ callers, rule }: RuleFigures): CallerReport[] {
  const top: CallerFigures[] = []
  for (const caller of callers.all()) {
    if (caller.most === 0) continue
    top.push(caller)
    if (top.length > 50 * TOP) shorten(top)
  }
  return shorten(top).map(({ key, calls, least, most, peak, timeline }) => {
    const caller = nameOf(key, rule)
    return { caller, calls, refused: { least, most }, peak, ...(timeline && { timeline: timelineReport(timeline) }) }
  })
}

function shorten(callers: CallerFigures[]): CallerFigures[] {
  callers.sort((a, b) => b.most - a.most || b.least - a.least || (a.key < b.key ? -1 : 1))
  if (callers.length > TOP) callers.length = TOP
  return callers
}

/** Returns a caller as people read it. */
export function nameOf(key: string, { by }: Pick<CompiledRule, 'by'>): string {
  if (by.length === 0) return 'all calls together'
  const parts = Object.entries(describeKey(key, by)).map(([name, { value, countedBy }]) => {
    const shown = countedBy === 'absence' ? '(none)' : value.replace(/[^\x20-\x7e]/g, '?').slice(0, 80)
    const text = countedBy === 'address' && name !== 'ip' ? `ip ${shown}` : shown
    return by.length === 1 ? text : `${name} ${text}`
  })
  return parts.join(', ')
}

export function textOf({ limits, by }: CompiledRule): string {
  const each = limits.map(({ count, periodMs, unit }) =>
    periodMs === 0 ? `${count} at a time` : `${count}/${unit ?? formatDuration(periodMs)}`,
  )
  return `${each.join(', ')}${by.length === 0 ? '' : ` by ${by.join(', ')}`}`
}

export function isoOf(us: number): string {
  return new Date(Math.floor(us / 1000)).toISOString()
}

function timelineReport({ bins, binUs }: Timeline): TimelineReport {
  const rows = [...bins]
    .sort(([a], [b]) => a - b)
    .map(([bin, { calls, least, most }]): TimelineRow => {
      return [(bin * binUs) / 1e6, calls, least, most]
    })
  return { binSeconds: binUs / 1e6, rows }
}

const STEPS = 24

/**
 * Returns, for limits from a tenth of the present one to ten times, the share of calls and of callers that would have been refused:
 * of calls in windows of the clock, and of callers those whose peak is higher.
 */
function refusalCurve(callers: Callers, limit: number): [limit: number, calls: number, callers: number][] {
  const windows = callers.windows.sorted()
  const peaks = callers.peaks.sorted()
  const all = windows.reduce((sum, [calls, times]) => sum + calls * times, 0)
  const people = peaks.reduce((sum, [, times]) => sum + times, 0)
  if (all === 0) return []
  return limitsAround(Math.max(1, limit)).map(one => {
    const refused = windows.reduce((sum, [calls, times]) => sum + Math.max(0, calls - one) * times, 0)
    const hit = peaks.reduce((sum, [peak, times]) => sum + (peak > one ? times : 0), 0)
    return [one, refused / all, people === 0 ? 0 : hit / people]
  })
}

/** Returns whole numbers, each once, the present limit among them. */
function limitsAround(limit: number): number[] {
  const limits = new Set([limit])
  for (let step = 0; step <= STEPS; step++) limits.add(Math.max(1, Math.round(limit * 10 ** ((2 * step) / STEPS - 1))))
  return [...limits].sort((a, b) => a - b)
}
