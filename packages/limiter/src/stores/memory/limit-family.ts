import type { Ending } from '../../algorithms/adaptive/estimator.ts'
import { capacityOf, type Meter, type Overrun } from '../../algorithms/algorithm.ts'
import { continued } from './migrate-states.ts'
import { isFaster, KEPT_US, recordCall } from './rule-versions.ts'
import { OVERFLOW_SLOT, type Table, type TableFamily } from './table.ts'

/*
 * A rule whose limit depends on the caller has a table for each limit. A key is in the table of its limit. When its limit
 * changes, it joins the table of the new one with what it has used, and stays in the old one:
 *
 *   100/h   |ann: 80|bob: 3|          ann was upgraded: each call is judged by the table of its own limit,
 *   5000/h  |ann: 80|carl: 950|       and recorded in all tables that have the key
 *
 * So the table that admits a call knows all calls of the key, whichever limit admitted them: the last call of any window shows
 * that all calls of the window were within its limit.
 *
 * What a longer window admits beyond the room of a shorter one is paid at the rate of the shorter one: until then that admits only
 * what another limit of the key would admit, too. So no key gets more than the largest of its limits in any interval, however
 * often they alternate. entries.lua does the same in Redis.
 */

const MOST_PARTS = 100

/** A table that a key with several limits is in. */
interface Member {
  readonly table: Table
  /** When the key joined the table; before all moments for its first one. */
  readonly joinedAt: number
  /** When another limit of the key was first used in place of this one. */
  leftAt: number
  /** When what longer windows have admitted beyond this one will be paid at its rate; 0 if they have not. */
  owesUntil: number
}

const memberOf = (table: Table, joinedAt: number, leftAt: number): Member => ({ table, joinedAt, leftAt, owesUntil: 0 })

export class LimitFamily implements TableFamily {
  /** The tables of limits that the rule states: calls of a key are recorded in them for as long as they matter. */
  readonly #lasting = new Set<Table>()
  /** All tables; those of limits that the rule does not state any more as long as they have keys. */
  readonly #tables = new Set<Table>()
  /** Whether each key is counted in the tables of all limits that the rule states. */
  isEager = false
  /** Keys in several tables, the one that was used last first. */
  readonly #moved = new Map<string, Member[]>()

  /** Adds a table; `isLasting` if the rule states its limit, rather than another source. */
  add(table: Table, isLasting: boolean): void {
    this.#tables.add(table)
    table.family = this
    if (isLasting) this.#lasting.add(table)
    else this.#lasting.delete(table)
    this.isEager = !canContinue([...this.#lasting].map(({ meters }) => meters[0]!))
  }

  /** The other tables that a new key has to be counted in from its first call on. */
  othersFor(key: string, table: Table): Table[] {
    if (!this.isEager || !this.#lasting.has(table) || this.#moved.has(key)) return []
    return [...this.#lasting].filter(other => other !== table)
  }

  /** A new key is counted in all tables from now on. */
  joinAll(key: string, table: Table, others: readonly Table[], now: number): void {
    this.#keep(
      key,
      [table, ...others].map(one => memberOf(one, -1, now)),
    )
  }

  /** The tables that have neither keys nor a limit that is in use, which are removed. */
  removeEmpty(isUsed: (table: Table) => boolean): Table[] {
    const removed = [...this.#tables].filter(table => table.keys === 0 && !isUsed(table))
    for (const table of removed) {
      this.#tables.delete(table)
      this.#lasting.delete(table)
    }
    return removed
  }

  get tables(): Iterable<Table> {
    return this.#tables
  }

  /** Whether a key is in several tables, or has to be. */
  isMoved(key: string): boolean {
    return this.isEager || (this.#moved.size > 0 && this.#moved.has(key))
  }

  /** Whether a key that is not in a table is in another one in which it matters. */
  isElsewhere(key: string, table: Table, now: number): boolean {
    for (const other of this.#tables) if (other !== table && other.isKeyLive(key, now)) return true
    return false
  }

  /** A key that matters in none of its tables is as good as new: it leaves all but one; returns how many. */
  leaveIdle(key: string, table: Table, now: number): number {
    const members = this.#moved.get(key)
    if (members?.some(member => member.table.isKeyLive(key, now))) return 0
    let left = 0
    for (const other of members?.map(member => member.table) ?? this.#tables) {
      if (other !== table && other.forget(key)) left++
    }
    this.#moved.delete(key)
    return left
  }

  /** Writes into a slot that a key just got what it has used by its other limits, or by the limit of the table `from`. */
  inherit(key: string, table: Table, slot: number, now: number, from?: Table): void {
    const members = from ? [memberOf(from, -1, 0)] : this.#membersOf(key, table)
    if (members.length === 0) return
    const meter = table.meters[0]!
    const numbers: number[] = []
    const sources = ancestorsOf(members, table).map(source => {
      const [place, previous, from] = [source.find(key), source.meters[0]!, numbers.length]
      numbers.push(...source.state(place).subarray(source.base(place), source.base(place) + previous.slots))
      return { previous, from }
    })
    const state = continued(meter, sources, numbers, 0, now)
    if (state) table.state(slot).set(state, table.base(slot))
  }

  /** A key with a slot that it has just inherited has this limit from now on; returns how many other slots it has left. */
  join(key: string, table: Table, now: number): number {
    const members = this.#membersOf(key, table)
    const [last] = members
    if (last === undefined) return 0
    last.leftAt = now
    const staying = members.filter(member => this.#lasting.has(member.table))
    this.#keep(key, [memberOf(table, now, now), ...staying])
    let left = 0
    for (const member of members) if (!staying.includes(member) && member.table.forget(key)) left++
    return left
  }

  /**
   * Counts in the other tables of a key a call that one of them has admitted to pass after `delay`; returns how many slots the key
   * has left.
   */
  record(key: string, table: Table, now: number, cost: number, delay: number): number {
    const members = this.#moved.get(key)
    const own = members?.find(member => member.table === table)
    if (members === undefined || own === undefined) return 0
    const [last] = members
    if (own !== last) last!.leftAt = now
    if (own.owesUntil > now) own.owesUntil += payUs(cost, table.meters[0]!)
    const staying = [own]
    const leaving: Table[] = []
    for (const member of members) {
      if (member === own) continue
      if (!this.#lasting.has(member.table) || isSuperfluous(member, staying, now)) {
        leaving.push(member.table)
        continue
      }
      staying.push(member)
      const slot = member.table.find(key)
      const state = member.table.state(slot)
      const [meter, base] = [member.table.meters[0]!, member.table.base(slot)]
      const carries = meter.rate?.windowUs === undefined && isFaster(meter, table.meters)
      const mayOwe = this.#lasting.has(table) && isShorter(meter, table.meters[0]!)
      if (mayOwe) owe(member, meter, meter.delay(state, base, now, cost), now, cost)
      for (const part of partsOf(cost, meter)) recordCall(meter, state, base, { now, cost: part, delay, carries })
    }
    this.#keep(key, staying)
    return leaving.filter(one => one.forget(key)).length
  }

  delayOf(key: string, table: Table, now: number, cost: number, delay: number): number {
    const members = cost > 0 ? this.#owing(key, table, now) : undefined
    if (members === undefined) return delay
    const delays = members.map(member => {
      const [meter, slot] = [member.table.meters[0]!, member.table.find(key)]
      const owesUs = Math.max(0, member.owesUntil - now)
      return Math.max(owesUs, meter.delay(member.table.state(slot), member.table.base(slot), now, cost))
    })
    return Math.max(delay, Math.min(...delays))
  }

  remainingOf(key: string, table: Table, now: number, remaining: number): number {
    const others = this.#owing(key, table, now)?.filter(({ owesUntil }) => owesUntil <= now)
    if (others === undefined) return remaining
    const lefts = others.map(({ table: other }) => {
      const slot = other.find(key)
      return other.meters[0]!.remaining(other.state(slot), other.base(slot), now)
    })
    return Math.min(remaining, Math.max(0, ...lefts))
  }

  /** The limits of a key, if that of a table has to pay what longer windows have admitted. */
  #owing(key: string, table: Table, now: number): readonly Member[] | undefined {
    const members = this.#moved.size > 0 ? this.#moved.get(key) : undefined
    const owesUntil = members?.find(member => member.table === table)?.owesUntil ?? 0
    return owesUntil > now ? members : undefined
  }

  /** Counts in the other tables of a key what was used beyond its limit, or what of it fits. */
  overdraw(key: string, table: Table, now: number, cost: number, overrun: Overrun): void {
    const members = this.#moved.get(key)
    const own = members?.find(member => member.table === table)
    if (members !== undefined && own !== undefined && own !== members[0]) {
      members[0]!.leftAt = now
      this.#keep(key, [own, ...members.filter(member => member !== own)])
    }
    for (const { table: other } of this.#membersOf(key, table)) {
      const [meter, slot] = [other.meters[0]!, other.find(key)]
      const [state, base] = [other.state(slot), other.base(slot)]
      if (overrun === 'debt' && meter.migrate?.overdraw) meter.migrate.overdraw(state, base, now, cost)
      else {
        const carries = meter.rate?.windowUs === undefined && isFaster(meter, table.meters)
        recordCall(meter, state, base, { now, cost, delay: 0, carries })
      }
    }
  }

  /** Takes back in all tables of a key what one of them has admitted at `moment`. */
  giveBack(
    key: string,
    now: number,
    cost: number,
    moment: number,
    applies: (meter: Meter) => boolean,
    ending: Ending = 'unknown',
  ): void {
    for (const { table, joinedAt } of this.#membersOf(key)) {
      const [meter, slot] = [table.meters[0]!, table.find(key)]
      if (!applies(meter)) continue
      if (meter.held?.learns) meter.held.learns.end(table.state(slot), table.base(slot), now, cost, moment, ending)
      else meter.refund(table.state(slot), table.base(slot), now, cost, moment, joinedAt)
    }
  }

  /** Whether a key that is idle in one table still matters in another. */
  isKept(key: string, now: number): boolean {
    return this.#moved.size > 0 && (this.#moved.get(key)?.some(({ table }) => table.isKeyLive(key, now)) ?? false)
  }

  /** A table has forgotten a key. */
  forgot(key: string, table: Table): void {
    const members = this.#moved.get(key)
    if (members !== undefined) {
      this.#keep(
        key,
        members.filter(member => member.table !== table),
      )
    }
  }

  #membersOf(key: string, except?: Table): Member[] {
    const moved = this.#moved.get(key)
    if (moved !== undefined) return moved.filter(({ table }) => table !== except)
    for (const table of this.#tables) {
      if (table !== except && table.find(key) !== OVERFLOW_SLOT) return [memberOf(table, -1, 0)]
    }
    return []
  }

  #keep(key: string, members: Member[]): void {
    if (members.length > 1) this.#moved.set(key, members)
    else this.#moved.delete(key)
  }
}

/** The tables whose counts a new one continues, as `ancestors` of rule-versions.ts has them for versions. */
function ancestorsOf(members: readonly Member[], { meters }: Table): Table[] {
  const tables = members.map(({ table }) => table)
  if (meters[0]!.rate?.windowUs === undefined) return tables
  const period = periodOf(meters[0]!)
  if (periodOf(tables[0]!.meters[0]!) >= period) return [tables[0]!]
  const byPeriod = tables.sort((a, b) => periodOf(a.meters[0]!) - periodOf(b.meters[0]!))
  return [byPeriod.find(table => periodOf(table.meters[0]!) >= period) ?? byPeriod.at(-1)!]
}

function isShorter(meter: Meter, other: Meter): boolean {
  return meter.rate?.windowUs !== undefined && periodOf(meter) < periodOf(other)
}

/** Notes that a longer window admits a call for which that of a member has no room, or has had none before. */
function owe(member: Member, meter: Meter, delay: number, now: number, cost: number): void {
  if (member.owesUntil <= now && delay === 0) return
  // the window may be full now, and is again once all is paid
  const from = member.owesUntil > now ? member.owesUntil : now + 2 * meter.rate!.windowUs!
  member.owesUntil = from + payUs(cost, meter)
}

/** How long a limit takes to admit a cost in the long run. */
function payUs(cost: number, { rate }: Meter): number {
  return Math.ceil(cost / rate!.perUs)
}

/** Whether a limit was not used for long, and another table of the key knows as much. */
function isSuperfluous(member: Member, staying: readonly Member[], now: number): boolean {
  const period = periodOf(member.table.meters[0]!)
  if (member.owesUntil > now || now - member.leftAt <= Math.max(KEPT_US, period)) return false
  return staying.some(other => periodOf(other.table.meters[0]!) >= period)
}

/**
 * Whether each of the limits can continue what another one has counted without a loss: their periods are the same, and the one with the
 * larger burst is also the faster one. Otherwise each has to count all calls itself from the first one on.
 */
export function canContinue(meters: readonly Meter[]): boolean {
  return meters.every(one =>
    meters.every(other => {
      const isSmaller = capacityOf(one) < capacityOf(other) && (one.rate?.perUs ?? 0) > (other.rate?.perUs ?? 0)
      return periodOf(one) === periodOf(other) && !isSmaller
    }),
  )
}

/** More than a limit ever admits at once is recorded in parts, each of which can be counted ahead. */
export function partsOf(cost: number, meter: Meter): number[] {
  const capacity = capacityOf(meter)
  if (cost <= capacity || capacity === 0) return [cost]
  const parts = Math.min(MOST_PARTS, Math.ceil(cost / capacity))
  return Array.from({ length: parts }, (_, i) => (i + 1 < parts ? capacity : cost - (parts - 1) * capacity))
}

function periodOf({ migrate }: Meter): number {
  return migrate?.scale[0] ?? 0
}
