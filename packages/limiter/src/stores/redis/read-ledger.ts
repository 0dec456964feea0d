import { capacityOf, type Meter } from '../../algorithms/algorithm.ts'
import { formatDuration } from '../../common/duration.ts'
import { callerOf } from '../ledger-keys.ts'
import type { RedisCounter } from './counter.ts'

/** One limit that a caller has had, and what is counted by it. Moments are milliseconds since 1970. */
export interface InspectedLimit {
  /** Such as `10/1m`; of a limit that the rules do not name, the numbers that are stored beside it. */
  readonly limit: string
  /** True if calls were judged by it last; others record what that one admits. */
  readonly isUsed: boolean
  /** The amounts that are used and left at this moment; undefined if the rules do not name the limit. */
  readonly used?: number | undefined
  readonly remaining?: number | undefined
  /** The moment at which all of it is back. */
  readonly fullAt?: number | undefined
  /** Since when it counts all calls; undefined if it has from the first one on. */
  readonly since?: number | undefined
  /** Until when it records calls although another limit is used. */
  readonly keptUntil?: number | undefined
  /** Until when it admits only what another limit of the caller admits, too. */
  readonly owesUntil?: number | undefined
  /** The numbers as they are stored. */
  readonly state: readonly number[]
}

/** The knowledge of the store of one caller of a rule. */
export interface InspectedLedger {
  readonly key: string
  /** The rule and the caller; undefined if no rule in force counts under this key. */
  readonly rule?: string | undefined
  readonly caller?: string | undefined
  readonly limits: readonly InspectedLimit[]
  /** Amounts that wait to be settled. */
  readonly reservations: readonly { readonly amount: number; readonly endsAt: number }[]
  /** Permits that processes hold in advance. */
  readonly leases: readonly { readonly permits: number; readonly processes: number; readonly endsAt: number }[]
  /** The last reset of the caller, as long as it is known. */
  readonly resetAt?: number | undefined
  readonly expiresInMs: number
}

/** A counter, the id of its rule, and its limit, a text for each level. */
export interface NamedCounter {
  readonly counter: RedisCounter
  readonly id: string
  readonly texts: readonly string[]
}

/** Reads the values of a ledger; undefined if they are not those of one. */
export function readLedger(
  key: string,
  values: readonly unknown[],
  ttlMs: number,
  now: number,
  counted: readonly NamedCounter[],
): InspectedLedger | undefined {
  const own = counted.filter(({ counter }) => callerOf(counter, key) !== undefined)
  const caller = own[0] && callerOf(own[0].counter, key)
  const base = { key, rule: own[0]?.id, caller, expiresInMs: ttlMs }
  const [first] = values
  if (!Array.isArray(first)) {
    if (!values.every(value => typeof value === 'number') || values.length === 0) return undefined
    const limit = limitOf(own, values.at(-1) as number, values.slice(0, -1) as number[], now)
    return { ...base, limits: [{ ...limit, isUsed: true }], reservations: [], leases: [] }
  }
  const [since, known, , leased, reserved, ...entries] = first as [
    number,
    number,
    number,
    unknown,
    unknown,
    ...unknown[][],
  ]
  const limits = entries.map((entry, place): InspectedLimit => {
    const [mark, joinedAt, staysUntil, owesUntil, levels, ...state] = entry as [
      number,
      number,
      number,
      number,
      unknown,
      ...number[],
    ]
    return {
      ...limitOf(own, mark, state, now, levels),
      isUsed: place === 0,
      since: joinedAt >= 0 ? joinedAt / 1000 : undefined,
      keptUntil: place > 0 ? staysUntil / 1000 : undefined,
      owesUntil: owesUntil > now ? owesUntil / 1000 : undefined,
    }
  })
  const packed = Array.isArray(reserved) && Array.isArray(reserved[3]) ? (reserved[3] as number[]) : []
  return {
    ...base,
    limits,
    reservations: groupsOf(packed, 4)
      .filter(([, endsAt = 0, amount = 0]) => amount > 0 && endsAt > now)
      .map(([, endsAt = 0, amount = 0]) => ({ amount, endsAt: endsAt / 1000 })),
    leases: groupsOf(Array.isArray(leased) ? (leased as number[]) : [], 3).map(
      ([endsAt = 0, permits = 0, processes = 0]) => ({ permits, processes, endsAt: endsAt / 1000 }),
    ),
    resetAt: known > now ? since / 1000 : undefined,
  }
}

/** Reads what is counted by the limit of a mark: by the fullest of its levels. */
function limitOf(
  own: readonly NamedCounter[],
  mark: number,
  state: readonly number[],
  now: number,
  levels?: unknown,
): Omit<InspectedLimit, 'isUsed'> {
  const named = own.find(({ counter }) => counter.mark === mark)
  if (named === undefined) return { limit: describe(levels), state }
  const { meters } = named.counter
  const limit = named.texts.join(', ')
  // slots of calls under way are a list of processes, whose length comes first
  if (meters.some(({ held }) => held !== undefined)) {
    const used = groupsOf(state.slice(1), 3).reduce(
      (sum, [, slots = 0, endsAt = 0]) => sum + (endsAt > now ? slots : 0),
      0,
    )
    return { limit, used, remaining: Math.max(0, Math.min(...meters.map(meter => capacityOf(meter))) - used), state }
  }
  let from = 0
  const shown = meters.map(meter => {
    const numbers = new Float64Array(meter.slots)
    for (let slot = 0; slot < meter.slots; slot++) numbers[slot] = state[from + slot] ?? 0
    from += meter.slots
    return countedBy(meter, numbers, now)
  })
  const fullest = shown.reduce((one, other) => (other.remaining < one.remaining ? other : one))
  return { limit, ...fullest, state }
}

function countedBy(meter: Meter, state: Float64Array, now: number) {
  const remaining = meter.remaining(state, 0, now)
  const fullAt = meter.rate?.start ? meter.rate.start.fullAt(state, 0) : meter.idleAt(state, 0)
  return { used: Math.max(0, capacityOf(meter, now) - remaining), remaining, fullAt: Math.max(now, fullAt) / 1000 }
}

/** Describes a limit that no rule names, by the numbers that are stored beside it. */
function describe(levels: unknown): string {
  if (!Array.isArray(levels)) return 'a limit that these rules do not have'
  const texts = levels.map(level => {
    const { name, count, most, scale, shape } = level as Record<string, unknown>
    const periodUs = Array.isArray(scale) ? Number(scale[0]) : Number(String(shape).split(' ')[1])
    return `${name} ${count ?? most}/${formatDuration(Math.round(periodUs / 1000))}`
  })
  return `${texts.join(', ')}, which these rules do not have`
}

function groupsOf(numbers: readonly number[], size: number): number[][] {
  return Array.from({ length: Math.floor(numbers.length / size) }, (_, at) => numbers.slice(at * size, (at + 1) * size))
}
