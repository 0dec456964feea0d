import type { Estimate } from '../../algorithms/adaptive/estimator.ts'
import type { OverloadStatus } from '../../overload/overload-guard.ts'
import type { Stats } from '../stats.ts'

/** One second of what protects from overload. */
export interface OverloadSecond {
  /** The findings of adaptive rules, by rule; of many rules, those with the most calls in flight. */
  readonly adaptive: Readonly<Record<string, Estimate>>
  /** The load of the processes; `shed` has the calls of this second. Left out without `overload` in the document. */
  readonly overload?: OverloadStatus | undefined
}

/** One number per second, oldest first; null if nothing is known of a second. */
export type Curve = readonly (number | null)[]

export interface OverloadSeries {
  readonly adaptive: Readonly<
    Record<string, { readonly limit: Curve; readonly inFlight: Curve; readonly latencyMs: Curve }>
  >
  readonly overload?: { readonly share: Curve; readonly shed: Readonly<Record<string, Curve>> } | undefined
}

const MOST_RULES = 100

/** The last minutes of limits found, latency, and calls shed by level, in bounded memory. */
export class OverloadHistory {
  readonly #seconds: number
  readonly #frames: { readonly at: number; readonly second: OverloadSecond }[] = []
  #shedBefore: Readonly<Record<string, number>> | undefined

  constructor(options: { readonly seconds?: number } = {}) {
    this.#seconds = options.seconds ?? 600
  }

  /** Stores the second that began at `at`; the first call only reads what was shed before. */
  record({ rules, overload }: Stats, at: number): OverloadSecond {
    const found = rules.flatMap(({ id, estimate }) => (estimate ? [[id, estimate] as const] : []))
    if (found.length > MOST_RULES) found.sort(([, one], [, other]) => other.inFlight - one.inFlight)
    const second = {
      adaptive: Object.fromEntries(found.slice(0, MOST_RULES)),
      ...(overload
        ? { overload: { ...overload, shed: shedSince(overload.shed, this.#shedBefore ?? overload.shed) } }
        : {}),
    }
    this.#shedBefore = overload?.shed ?? {}
    this.#frames.push({ at, second })
    const oldest = at - (this.#seconds - 1) * 1000
    while (this.#frames[0]!.at < oldest || this.#frames.length > this.#seconds) this.#frames.shift()
    return second
  }

  /** Returns the newest seconds up to the one that began at `at`. */
  read(seconds: number, at: number): OverloadSeries {
    const length = Math.max(1, Math.min(seconds, this.#seconds))
    const blank = () => new Array<number | null>(length).fill(null)
    const adaptive = new Map<string, Record<'limit' | 'inFlight' | 'latencyMs', (number | null)[]>>()
    const shed = new Map<string, (number | null)[]>()
    let share: (number | null)[] | undefined
    for (const { at: began, second } of this.#frames) {
      const place = length - 1 - Math.round((at - began) / 1000)
      if (place < 0 || place >= length) continue
      for (const [rule, { limit, inFlight, latencyMs }] of Object.entries(second.adaptive)) {
        const curves = adaptive.get(rule) ?? { limit: blank(), inFlight: blank(), latencyMs: blank() }
        adaptive.set(rule, curves)
        curves.limit[place] = limit
        curves.inFlight[place] = inFlight
        curves.latencyMs[place] = latencyMs
      }
      if (!second.overload) continue
      share ??= blank()
      share[place] = second.overload.share
      for (const [level, calls] of Object.entries(second.overload.shed)) {
        const curve = shed.get(level) ?? blank()
        shed.set(level, curve)
        curve[place] = calls
      }
    }
    return {
      adaptive: Object.fromEntries(adaptive),
      ...(share ? { overload: { share, shed: Object.fromEntries(shed) } } : {}),
    }
  }
}

/** Returns the calls that were shed since a reading; a count that became smaller started again, with a new guard or in another process. */
function shedSince(
  now: Readonly<Record<string, number>>,
  before: Readonly<Record<string, number>>,
): Record<string, number> {
  const grown = Object.entries(now).map(([level, calls]) => {
    const earlier = before[level] ?? 0
    return [level, calls < earlier ? calls : calls - earlier] as const
  })
  return Object.fromEntries(grown)
}
