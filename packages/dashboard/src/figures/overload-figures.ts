import type { Estimate, FiguresHistory, LiveFigures, OverloadStats } from '../api/generated.ts'
import { CurveRing } from './ring.ts'

/** The curves of an adaptive rule. */
export interface AdaptiveCurves {
  readonly limit: CurveRing
  readonly inFlight: CurveRing
  readonly latencyMs: CurveRing
}

const LEVELS: Readonly<Record<string, number>> = { critical: 90, default: 50, sheddable: 10 }

/** The last minutes of the limits that adaptive rules have found, and of the calls that were shed. */
export class OverloadFigures {
  readonly #rules = new Map<string, AdaptiveCurves>()
  readonly #shed = new Map<string, CurveRing>()
  #adaptive: Readonly<Record<string, Estimate>> = {}
  #overload: OverloadStats | undefined

  fill(second: number, { adaptive = {}, overload }: FiguresHistory): void {
    for (const [rule, { limit, inFlight, latencyMs }] of Object.entries(adaptive)) {
      const curves = this.#curvesFor(rule)
      curves.limit.fill(second, limit)
      curves.inFlight.fill(second, inFlight)
      curves.latencyMs.fill(second, latencyMs)
    }
    for (const [level, calls] of Object.entries(overload?.shed ?? {})) this.#shedFor(level).fill(second, calls)
  }

  add(second: number, { adaptive = {}, overload }: Pick<LiveFigures, 'adaptive' | 'overload'>): void {
    this.#adaptive = adaptive
    this.#overload = overload
    for (const [rule, { limit, inFlight, latencyMs }] of Object.entries(adaptive)) {
      const curves = this.#curvesFor(rule)
      curves.limit.write(second, limit)
      curves.inFlight.write(second, inFlight)
      // nothing is known before the first answers
      if (latencyMs > 0) curves.latencyMs.write(second, latencyMs)
    }
    for (const [level, calls] of Object.entries(overload?.shed ?? {})) this.#shedFor(level).write(second, calls)
    this.#forget(second)
  }

  /** The adaptive rules of the last minutes. */
  get rules(): readonly string[] {
    return [...this.#rules.keys()].sort()
  }

  curvesOf(rule: string): AdaptiveCurves | undefined {
    return this.#rules.get(rule)
  }

  /** Returns the present findings of a rule. */
  newestOf(rule: string): Estimate | undefined {
    return this.#adaptive[rule]
  }

  /** The load of the gateway; undefined unless its rule file has `overload`. */
  get overload(): OverloadStats | undefined {
    return this.#overload
  }

  /** Calls that were shed in the newest second and in the last minutes, the highest level first. */
  shed(second: number): readonly { readonly level: string; readonly now: number; readonly sum: number }[] {
    return [...this.#shed]
      .map(([level, ring]) => ({ level, now: ring.at(second) ?? 0, sum: ring.sum(second) }))
      .sort((one, other) => rankOf(other.level) - rankOf(one.level))
  }

  /** Rules and levels that are gone must not stay in memory for as long as a page is open. */
  #forget(second: number): void {
    for (const [rule, { limit }] of this.#rules) if (limit.isEmpty(second)) this.#rules.delete(rule)
    for (const [level, ring] of this.#shed) if (ring.isEmpty(second)) this.#shed.delete(level)
  }

  #curvesFor(rule: string): AdaptiveCurves {
    const curves = this.#rules.get(rule) ?? {
      limit: new CurveRing(),
      inFlight: new CurveRing(),
      latencyMs: new CurveRing(),
    }
    this.#rules.set(rule, curves)
    return curves
  }

  #shedFor(level: string): CurveRing {
    const ring = this.#shed.get(level) ?? new CurveRing()
    this.#shed.set(level, ring)
    return ring
  }
}

function rankOf(level: string): number {
  return LEVELS[level] ?? Number(level)
}
