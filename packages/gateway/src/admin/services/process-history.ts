import { StepRing } from 'diana-limiter/gateway'
import type { ProcessReport } from './process-report.ts'

/** The last five minutes of one number, oldest first, in steps; null if nothing is known of a step. */
export type Course = readonly (number | null)[]

/** One process: what it said last, and its last five minutes. */
export interface ProcessFigures extends Omit<ProcessReport, 'services' | 'callers'> {
  readonly callers?:
    | { readonly connections: number; readonly inProgress: number; readonly rejected: Readonly<Record<string, number>> }
    | undefined
  readonly history: Readonly<Record<(typeof courses)[number], Course>>
}

const courses = ['utilization', 'delayMs', 'cpu', 'rssBytes', 'heapUsedBytes'] as const
const historySeconds = 300
const stepSeconds = 5
/** A process that has reported nothing for this time is gone. */
const silentSeconds = 3

interface Known {
  report: ProcessReport
  at: number
  readonly courses: Readonly<Record<(typeof courses)[number], StepRing>>
  /** Calls turned away in a second, by reason. */
  readonly rejected: Map<string, StepRing>
}

/** Remembers what the processes that run now said of themselves in the last five minutes. */
export class ProcessHistory {
  readonly #known = new Map<number, Known>()
  #second = 0

  record(second: number, reports: readonly ProcessReport[]): void {
    this.#second = second
    for (const report of reports) {
      const before = this.#known.get(report.pid)
      const isSame = before?.report.startedAt === report.startedAt
      const known = before && isSame ? before : create(report)
      const { utilization, delay, cpu, rssBytes, heapUsedBytes } = report.load
      const values = { utilization, delayMs: delay.p99Ms, cpu, rssBytes, heapUsedBytes }
      for (const name of courses) known.courses[name].write(second, values[name])
      addRejected(known, second, report, known === before)
      known.report = report
      known.at = second
      this.#known.set(report.pid, known)
    }
    for (const [pid, { at }] of this.#known) if (second - at > silentSeconds) this.#known.delete(pid)
  }

  get at(): number {
    return this.#second * 1000
  }

  /** Returns the processes that run, the oldest first. */
  read(): ProcessFigures[] {
    const known = [...this.#known.values()].sort(({ report: one }, { report: other }) => {
      return one.startedAt - other.startedAt || one.pid - other.pid
    })
    return known.map(({ report: { services: _, callers, ...report }, courses: rings, rejected }) => ({
      ...report,
      ...(callers && { callers: { ...callers, rejected: this.#sums(rejected) } }),
      history: this.#coursesOf(rings),
    }))
  }

  #coursesOf(rings: Known['courses']): ProcessFigures['history'] {
    const read = (name: (typeof courses)[number]): Course => averages(rings[name].read(this.#second, historySeconds))
    return {
      ...{ utilization: read('utilization'), delayMs: read('delayMs'), cpu: read('cpu') },
      ...{ rssBytes: read('rssBytes'), heapUsedBytes: read('heapUsedBytes') },
    }
  }

  #sums(rejected: ReadonlyMap<string, StepRing>): Record<string, number> {
    const sums = [...rejected].map(([reason, ring]) => [reason, ring.sum(this.#second, historySeconds)] as const)
    return Object.fromEntries(sums.filter(([, count]) => count > 0))
  }
}

function create(report: ProcessReport): Known {
  const rings = courses.map(name => [name, new StepRing(new Float64Array(historySeconds), { empty: Number.NaN })])
  return { report, at: 0, courses: Object.fromEntries(rings) as Known['courses'], rejected: new Map() }
}

/** Adds up rejected calls by reason. The reasons are words of the gateway, so there are few of them. */
function addRejected({ report: before, rejected }: Known, second: number, now: ProcessReport, isKnown: boolean): void {
  if (!isKnown) return
  for (const [reason, count] of Object.entries(now.callers?.rejected ?? {})) {
    const more = count - (before.callers?.rejected[reason] ?? 0)
    if (more <= 0) continue
    const ring = rejected.get(reason) ?? new StepRing(new Float64Array(historySeconds))
    ring.write(second, more)
    rejected.set(reason, ring)
  }
}

function averages(values: readonly number[]): (number | null)[] {
  return Array.from({ length: historySeconds / stepSeconds }, (_, index) => {
    const known = values.slice(index * stepSeconds, (index + 1) * stepSeconds).filter(value => !Number.isNaN(value))
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length
  })
}
