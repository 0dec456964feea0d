import type { Reservation } from '../leases/reservations.ts'
import type { Entry, LedgerRule } from './entries.ts'
import type { LedgerLimit, Limits } from './limits.ts'

/** Another number whenever ledgers are written in another way. */
const VERSION = 1

/** An amount that was charged in advance, until it is settled; an amount of 0 is one that was settled after its end. */
export interface Reserved {
  readonly id: number
  readonly endsAt: number
  readonly amount: number
  /** The moment that it was counted at. */
  readonly moment: number
}

/** Concurrency slots of one process. */
export interface HeldBy {
  amount: number
  /** They are released then, unless the process renews them. */
  until: number
}

/** What is stored of one caller of a rule. Moments are microseconds since 1970. */
export interface LedgerRecord {
  /** When it was written: time never goes back for a caller. */
  readonly at: number
  /** When the caller was last reset, and until when that is known. */
  readonly since: number
  readonly known: number
  readonly entries: Entry[]
  readonly reserved: Reserved[]
  /** Until when there may be reservations for which there was no room. */
  readonly unlisted: number
  /** Permits that processes hold in advance. */
  readonly leases: ReadonlyMap<string, Reservation>
  readonly slots: ReadonlyMap<string, HeldBy>
}

/** A ledger as it is stored, in JSON: what is not there is 0, or empty. */
interface Stored {
  readonly version: number
  readonly at: number
  readonly reset?: readonly [since: number, known: number]
  readonly limits?: readonly StoredEntry[]
  readonly reserved?: readonly (readonly number[])[]
  readonly unlisted?: number
  readonly leases?: readonly (readonly [holder: string, sequence: number, amount: number, until: number])[]
  readonly slots?: readonly (readonly [holder: string, amount: number, until: number])[]
}

interface StoredEntry {
  readonly limit: string
  readonly state: readonly (number | string)[]
  readonly joined?: number
  readonly until?: number
  readonly owes?: number
  readonly terms?: readonly unknown[]
}

export const NEW_LEDGER: LedgerRecord = {
  at: 0,
  since: -1,
  known: 0,
  entries: [],
  reserved: [],
  unlisted: 0,
  leases: new Map(),
  slots: new Map(),
}

export function writeLedger(ledger: LedgerRecord): string {
  const { at, since, known, entries, reserved, unlisted, leases, slots } = ledger
  const stored: Stored = {
    version: VERSION,
    at,
    ...(known > at && { reset: [since, known] as const }),
    ...(entries.length > 0 && { limits: entries.map(storedEntry) }),
    ...(reserved.length > 0 && { reserved: reserved.map(one => [one.id, one.endsAt, one.amount, one.moment]) }),
    ...(unlisted > at && { unlisted }),
    ...(leases.size > 0 && {
      leases: Array.from(leases, ([holder, { sequence, amount, until }]) => [holder, sequence, amount, until] as const),
    }),
    ...(slots.size > 0 && {
      slots: Array.from(slots, ([holder, { amount, until }]) => [holder, amount, until] as const),
    }),
  }
  return JSON.stringify(stored)
}

/** Reads a ledger; one that another program has written is that of a caller never seen. */
export function readLedger(text: string | null | undefined, rule: LedgerRule, limits: Limits): LedgerRecord {
  if (typeof text !== 'string') return NEW_LEDGER
  try {
    return recordOf(JSON.parse(text) as Stored, rule, limits)
  } catch {
    return NEW_LEDGER
  }
}

function recordOf(stored: Stored, rule: LedgerRule, limits: Limits): LedgerRecord {
  if (stored.version !== VERSION) return NEW_LEDGER
  const [since, known] = stored.reset ?? [-1, 0]
  return {
    at: numberIn(stored.at),
    since: numberIn(since),
    known: numberIn(known),
    entries: (stored.limits ?? []).flatMap(entry => entryOf(entry, rule, limits) ?? []),
    reserved: (stored.reserved ?? []).map(numbers => {
      const [id, endsAt, amount, moment] = numbers.map(numberIn)
      return { id: id!, endsAt: endsAt!, amount: amount!, moment: moment! }
    }),
    unlisted: numberIn(stored.unlisted ?? 0),
    leases: new Map(
      (stored.leases ?? []).map(([holder, sequence, amount, until]) => {
        return [String(holder), { sequence: numberIn(sequence), amount: numberIn(amount), until: numberIn(until) }]
      }),
    ),
    slots: new Map(
      (stored.slots ?? []).map(([holder, amount, until]) => {
        return [String(holder), { amount: numberIn(amount), until: numberIn(until) }]
      }),
    ),
  }
}

/** Zeros at the end of a state are left out, and JSON has no word for infinity. */
function storedEntry({ limit, joinedAt, staysUntil, owesUntil, state }: Entry): StoredEntry {
  let size = state.length
  while (size > 0 && state[size - 1] === 0) size--
  return {
    limit: limit.mark,
    state: Array.from(state.subarray(0, size), number => (Number.isFinite(number) ? number : String(number))),
    ...(joinedAt >= 0 && { joined: joinedAt }),
    ...(staysUntil > 0 && { until: staysUntil }),
    ...(owesUntil > 0 && { owes: owesUntil }),
    ...(limit.terms && { terms: limit.terms }),
  }
}

/** Undefined if no process of this release knows the limit. */
function entryOf(stored: StoredEntry, rule: LedgerRule, limits: Limits): Entry | undefined {
  const limit = limitWith(String(stored.limit), rule) ?? limits.known(stored.limit, stored.terms)
  if (limit === undefined || stored.state.length > limit.stride) return undefined
  const state = new Float64Array(limit.stride)
  state.set(stored.state.map(numberIn))
  const [joinedAt, staysUntil, owesUntil] = [stored.joined ?? -1, stored.until ?? 0, stored.owes ?? 0].map(numberIn)
  return { limit, joinedAt: joinedAt!, staysUntil: staysUntil!, owesUntil: owesUntil!, state }
}

function limitWith(mark: string, { limit, stated, versions }: LedgerRule): LedgerLimit | undefined {
  if (limit.mark === mark) return limit
  return stated?.find(other => other.mark === mark) ?? versions.find(version => version.limit.mark === mark)?.limit
}

function numberIn(value: unknown): number {
  const number = typeof value === 'number' ? value : typeof value === 'string' ? Number(value) : Number.NaN
  if (Number.isNaN(number)) throw new TypeError('not a number')
  return number
}
