import { createHash } from 'node:crypto'
import type { Algorithm, Limit, Meter, WaitOptions } from '../../algorithms/algorithm.ts'
import { capacityOf } from '../../algorithms/algorithm.ts'
import { type Layout, layOut } from '../memory/migrate-states.ts'
import type { FleetRule } from '../store.ts'

/** A limit that callers are counted by: the meters of its levels, and where the numbers of each begin in a state. */
export interface LedgerLimit extends Layout {
  /** Identifies how a state is read: limits of one rule with the same mark count in the same numbers. */
  readonly mark: string
  /** The algorithm, and what its meters were made of; undefined if that is not known. */
  readonly terms: readonly unknown[] | undefined
}

const MOST_REMEMBERED = 1000

/** The limits that a process knows: those of its own rules, and those of other processes, made of what their ledgers say. */
export class Limits {
  readonly #algorithms: readonly Algorithm[]
  readonly #own = new Map<string, LedgerLimit>()
  readonly #made = new Map<string, LedgerLimit | undefined>()

  constructor(algorithms: readonly Algorithm[]) {
    this.#algorithms = algorithms
  }

  /** Returns a limit of a rule of this process; `varies` if the rule has others for other callers. */
  of({ algorithm, terms }: FleetRule, meters: readonly Meter[], varies: boolean): LedgerLimit {
    const mark = meters.map(meter => markOf(algorithm, meter, varies, terms)).join(' + ')
    const limit = { ...layOut(meters), mark, terms: terms ? [algorithm, ...terms] : this.#own.get(mark)?.terms }
    remember(this.#own, mark, limit)
    return limit
  }

  /** Returns a limit of another process, or of a rule of before; undefined if its algorithm is not known here. */
  known(mark: string, terms: unknown): LedgerLimit | undefined {
    const own = this.#own.get(mark)
    if (own !== undefined || !Array.isArray(terms)) return own
    const name = `${mark} ${JSON.stringify(terms)}`
    if (!this.#made.has(name)) remember(this.#made, name, this.#make(mark, terms))
    return this.#made.get(name)
  }

  #make(mark: string, terms: readonly unknown[]): LedgerLimit | undefined {
    const [name, limits, options, wait] = terms
    const algorithm = this.#algorithms.find(one => one.name === name)
    if (algorithm === undefined || !Array.isArray(limits)) return undefined
    const make = (limit: Limit): Meter => {
      return algorithm.meter(limit, options as Record<string, unknown>, (wait ?? undefined) as WaitOptions | undefined)
    }
    try {
      return { ...layOut(limits.map(make)), mark, terms }
    } catch {
      // another program wrote it
      return undefined
    }
  }
}

/** Names how a meter counts; for a limit of a single caller, and for a meter without a scale, also how much it admits. */
function markOf(algorithm: string, meter: Meter, varies: boolean, terms: readonly unknown[] | undefined): string {
  const { slots, maxWaitUs, rate, redis } = meter
  const scale = meter.migrate?.scale
  const shape = `${algorithm} ${slots}/${(scale ?? []).join('/')}`
  if (scale !== undefined && !varies) return shape
  const amounts = JSON.stringify([redis?.numbers ?? [capacityOf(meter), rate?.perUs], maxWaitUs, scale ? null : terms])
  return `${shape} ${createHash('sha1').update(amounts).digest('hex').slice(0, 12)}`
}

function remember<Value>(memory: Map<string, Value>, name: string, value: Value): void {
  memory.delete(name)
  memory.set(name, value)
  if (memory.size > MOST_REMEMBERED) memory.delete(memory.keys().next().value!)
}
