import type { CallRecord } from './call-record.ts'
import { Histogram } from './histogram.ts'
import type { TrafficStats } from './http-stats.ts'

/** Methods with a series of their own; a caller cannot make more. */
const methods: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
const classes = 5
const maxSeries = 10_000

/** Counters of one route and one address. */
class Series {
  readonly route: string
  readonly upstream: string
  readonly #calls: number[] = Array((methods.length + 1) * classes).fill(0)
  readonly #duration = new Histogram()
  readonly #firstByte = new Histogram()
  #retries = 0
  #errors: Record<string, number> | undefined
  #bytesIn = 0
  #bytesOut = 0

  constructor(route: string, upstream: string) {
    this.route = route
    this.upstream = upstream
  }

  add(record: CallRecord): void {
    const at = methods.indexOf(record.method ?? '')
    const row = at < 0 ? methods.length : at
    const column = Math.min(Math.max(Math.floor(record.status / 100), 1), classes) - 1
    this.#calls[row * classes + column]!++
    this.#duration.add(record.totalMs)
    const { firstByteMs } = record
    if (firstByteMs !== undefined) this.#firstByte.add(firstByteMs)
    if (record.ownError !== undefined) this.#countError(record.ownError)
    if (record.tries > 1) this.#retries += record.tries - 1
    this.#bytesIn += record.bytesIn
    this.#bytesOut += record.bytesOut
  }

  #countError(reason: string): void {
    this.#errors ??= {}
    this.#errors[reason] = (this.#errors[reason] ?? 0) + 1
  }

  figures(): TrafficStats {
    const calls: Record<string, number> = {}
    this.#calls.forEach((count, index) => {
      const method = methods[Math.floor(index / classes)] ?? 'OTHER'
      if (count > 0) calls[`${method} ${(index % classes) + 1}xx`] = count
    })
    return {
      ...{ route: this.route, upstream: this.upstream, calls, retries: this.#retries, errors: { ...this.#errors } },
      ...{ bytesIn: this.#bytesIn, bytesOut: this.#bytesOut },
      ...{ duration: this.#duration.figures(), firstByte: this.#firstByte.figures() },
    }
  }
}

/** Counts calls by route and address. The number of series is bounded, however often routes change. */
export class TrafficCounts {
  readonly #routes = new Map<string, Map<string, Series>>()
  #size = 0
  #last: Series | undefined

  add(record: CallRecord): void {
    this.#find(record.route?.label ?? '', record.upstream?.label ?? '').add(record)
  }

  figures(): TrafficStats[] {
    return [...this.#routes.values()].flatMap(series => [...series.values()].map(one => one.figures()))
  }

  #find(route: string, upstream: string): Series {
    const last = this.#last
    // most calls go where the one before went
    if (last !== undefined && last.route === route && last.upstream === upstream) return last
    const found = this.#routes.get(route)?.get(upstream) ?? this.#create(route, upstream)
    this.#last = found
    return found
  }

  #create(route: string, upstream: string): Series {
    if (this.#size >= maxSeries && route !== 'other') return this.#find('other', 'other')
    const series = new Series(route, upstream)
    const known = this.#routes.get(route)
    if (known) known.set(upstream, series)
    else this.#routes.set(route, new Map([[upstream, series]]))
    this.#size++
    return series
  }
}
