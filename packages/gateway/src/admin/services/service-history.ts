import { StepRing } from 'diana-limiter/gateway'
import { latencyBoundsMs } from '../../services/address-state.ts'
import type { TrafficSample } from '../../services/reports.ts'
import type { ProcessReport } from './process-report.ts'
import { type Quantiles, quantilesOf } from './quantile.ts'

/** The outcomes of the calls of a route, or of those that went to one of its addresses. */
export interface ServiceFigures {
  /** Calls per second, in the last ten seconds. */
  readonly perSecond: number
  /** In the last minute. */
  readonly calls: number
  readonly errors: number
  readonly retries: number
  /** The time until answers of the last minute began; left out if there was none. */
  readonly latency?: Quantiles | undefined
  /** The last five minutes in steps, oldest first. */
  readonly history: { readonly calls: readonly number[]; readonly errors: readonly number[] }
}

const historySeconds = 300
/** A step of the history. */
export const stepSeconds = 5
const minuteSeconds = 60
const rateSeconds = 10
const maxSeries = 200
const buckets = latencyBoundsMs.length + 1

/** The last minutes of one route at one address. */
class Series {
  readonly route: string
  readonly address: string
  // longer by one step, so that the step of the oldest second is whole
  readonly calls: StepRing = ringOfSeconds(historySeconds + stepSeconds)
  readonly errors: StepRing = ringOfSeconds(historySeconds + stepSeconds)
  readonly retries: StepRing = ringOfSeconds(minuteSeconds)
  readonly latency: readonly StepRing[] = Array.from({ length: buckets }, () => ringOfSeconds(minuteSeconds))
  lastAt = 0

  constructor({ route, address }: TrafficSample) {
    this.route = route
    this.address = address
  }

  add(second: number, { calls, errors, retries, latency }: Difference): void {
    if (calls + retries > 0) this.lastAt = second
    this.calls.add(second, calls)
    this.errors.add(second, errors)
    this.retries.add(second, retries)
    for (const [at, count] of latency.entries()) {
      if (count > 0) this.latency[at]?.add(second, count)
    }
  }
}

type Difference = Pick<TrafficSample, 'calls' | 'errors' | 'retries' | 'latency'>

/** The counts of one process when it was last asked. */
interface Known {
  readonly at: number
  readonly samples: ReadonlyMap<string, TrafficSample>
}

/** Makes a history of seconds out of counts that processes report since their start: of the busiest routes and addresses. */
export class ServiceHistory {
  readonly #series = new Map<string, Series>()
  readonly #known = new Map<number, Known>()
  #second = 0
  #since = 0

  /** Takes the reports of all processes at the end of a second. */
  record(second: number, reports: readonly ProcessReport[]): void {
    this.#since ||= second
    this.#second = second
    for (const { pid, startedAt, services } of reports) {
      const samples = new Map(services?.traffic.map(sample => [keyOf(sample), sample]))
      const before = this.#known.get(pid)
      this.#known.set(pid, { at: second, samples })
      // when the calls came of a process that ran before it was first asked is not known
      if (before === undefined && startedAt < this.#since * 1000) continue
      const elapsed = second - (before?.at ?? startedAt / 1000)
      for (const [key, sample] of samples) {
        const difference = differenceOf(before?.samples.get(key), sample, elapsed)
        if (difference !== undefined) this.#seriesOf(key, sample)?.add(second, difference)
      }
    }
    for (const [pid, { at }] of this.#known) if (second - at > historySeconds) this.#known.delete(pid)
    for (const [key, { lastAt }] of this.#series) if (second - lastAt > historySeconds) this.#series.delete(key)
  }

  /** Returns when the newest second began, in milliseconds since 1970. */
  get at(): number {
    return this.#second * 1000
  }

  /** Returns the figures of one address of a route, or of all of them together; undefined if none had a call lately. */
  read(route: string, address?: string): ServiceFigures | undefined {
    const wanted =
      address === undefined
        ? [...this.#series.values()].filter(one => one.route === route)
        : [this.#series.get(keyOf({ route, address }))].filter(one => one !== undefined)
    if (wanted.length === 0) return undefined
    const second = this.#second
    const sum = (read: (series: Series) => number) => wanted.reduce((total, one) => total + read(one), 0)
    const steps = (read: (series: Series) => StepRing) =>
      wanted
        .map(one => wholeSteps(read(one), second))
        .reduce((one, other) => one.map((count, at) => count + other[at]!))
    const counts = Array.from({ length: buckets }, (_, at) =>
      sum(({ latency }) => latency[at]!.sum(second, minuteSeconds)),
    )
    const latency = quantilesOf(counts)
    const watched = Math.max(1, Math.min(rateSeconds, second - this.#since))
    return {
      perSecond: sum(({ calls }) => calls.sum(second, rateSeconds)) / watched,
      calls: sum(({ calls }) => calls.sum(second, minuteSeconds)),
      errors: sum(({ errors }) => errors.sum(second, minuteSeconds)),
      retries: sum(({ retries }) => retries.sum(second, minuteSeconds)),
      ...(latency && { latency }),
      history: { calls: steps(({ calls }) => calls), errors: steps(({ errors }) => errors) },
    }
  }

  /** Finds or makes the series of a key; undefined if there are too many, and all others had a call later. */
  #seriesOf(key: string, sample: TrafficSample): Series | undefined {
    const known = this.#series.get(key)
    if (known !== undefined) return known
    if (this.#series.size >= maxSeries) {
      const [oldest] = [...this.#series].sort(([, one], [, other]) => one.lastAt - other.lastAt)
      if (oldest === undefined || oldest[1].lastAt >= this.#second - minuteSeconds) return undefined
      this.#series.delete(oldest[0])
    }
    const series = new Series(sample)
    this.#series.set(key, series)
    return series
  }
}

/** Returns what was counted between two samples; undefined if that cannot be known. */
function differenceOf(
  before: TrafficSample | undefined,
  now: TrafficSample,
  elapsedSeconds: number,
): Difference | undefined {
  // one that is older was among those that are too many to be reported
  if (before === undefined) return now.ageMs <= (elapsedSeconds + 1) * 1000 ? now : undefined
  // the address was counted from zero, with other settings
  if (now.calls < before.calls || now.ageMs < before.ageMs) return undefined
  return {
    calls: now.calls - before.calls,
    errors: Math.max(0, now.errors - before.errors),
    retries: Math.max(0, now.retries - before.retries),
    latency: now.latency.map((count, at) => Math.max(0, count - (before.latency[at] ?? 0))),
  }
}

function keyOf({ route, address }: Pick<TrafficSample, 'route' | 'address'>): string {
  return `${route} ${address}`
}

function ringOfSeconds(length: number): StepRing {
  return new StepRing(new Float64Array(length))
}

/** Returns the sums of whole steps, oldest first; the newest is the last that has ended by `second`. Steps begin at fixed times. */
function wholeSteps(ring: StepRing, second: number): number[] {
  const count = historySeconds / stepSeconds
  const end = Math.floor((second + 1) / stepSeconds) * stepSeconds
  return Array.from({ length: count }, (_, index) => {
    return ring.sum(end - (count - 1 - index) * stepSeconds - 1, stepSeconds)
  })
}
