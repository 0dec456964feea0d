import type { Meter } from '../../algorithms/algorithm.ts'
import { partsOf } from '../memory/limit-family.ts'
import { hasScaleOf, isKin, sourceLevelOf } from '../memory/migrate-states.ts'
import { isFaster, KEPT_US, MOST_VERSIONS, recordCall } from '../memory/rule-versions.ts'
import type { LedgerLimit } from './limits.ts'

/** A limit that a caller has had, with the numbers of the caller. */
export interface Entry {
  /** The meters of the rule in force, if that has the same limit. */
  limit: LedgerLimit
  /** When it joined the others; before all moments if it was the first. */
  joinedAt: number
  /** Until when it stays though another one is used. */
  staysUntil: number
  /** Until when a shorter window of a plan pays for what a longer one has admitted beyond its room. */
  owesUntil: number
  readonly state: Float64Array
}

/** The parts of a rule that its ledgers depend on. */
export interface LedgerRule {
  readonly limit: LedgerLimit
  /** The limits that the rule states, if its limit depends on the caller. */
  readonly stated: readonly LedgerLimit[] | undefined
  /** Each caller is counted by all stated limits from the first call on. */
  readonly isEager: boolean
  /** When the limit was put in force, if this process has changed it; else -1. */
  readonly since: number
  /** Since when the limit counts all calls: earlier, if it was used before. */
  readonly countsSince: number
  /** The versions of the rule that this process has used, and when each was used last. */
  readonly versions: readonly { readonly limit: LedgerLimit; readonly usedAt: number }[]
  /** Limits that are no longer used are forgotten at once, for tests. */
  readonly forgetsLimits: boolean
}

/**
 * The limits that a caller has had, the one that was used last first. A call is judged by the entry of its own limit and recorded in all
 * others, so that the entry which admits a call knows all calls of the caller.
 *
 * A longer window of a plan may admit more than a shorter one has room for. That is paid at the rate of the shorter one: until then (`owesUntil`)
 * that admits only what another plan of the caller would admit, too. entries.lua does the same in Redis.
 */
export class Entries {
  list: Entry[]
  /** The rule whose move is made: a batch may have calls by several limits of a caller. */
  rule: LedgerRule
  readonly #now: number
  #joining: Entry | undefined
  #isFresh = false

  constructor(list: Entry[], rule: LedgerRule, now: number) {
    this.list = list
    this.rule = rule
    this.#now = now
  }

  /** The entry that a rule's calls are judged by. It is none of the list before a call was counted by it. */
  get own(): Entry {
    const { limit, stated } = this.rule
    const [first] = this.list
    if (first && stated && (this.list.length > 1 || first.limit.mark !== limit.mark)) this.#dropIdle()
    if (!stated && this.list.length > 1) this.#dropOld()
    const known = this.list.find(entry => entry.limit.mark === limit.mark)
    if (known) known.limit = limit
    if (known) return known
    if (this.#joining?.limit.mark !== limit.mark) this.#joining = joiningOf(limit, this.#changedAt, this.list)
    return this.#joining!
  }

  /** The moment from which no entry matters. */
  get idleAt(): number {
    return Math.max(0, ...this.list.map(idleAtOf))
  }

  /** Lets an entry be the one that was used last; a new one joins the others. */
  use(own: Entry): void {
    if (own === this.#joining) this.#join(own)
    if (this.list[0] === own) return
    this.#leave(this.list[0]!, this.#changedAt)
    this.list = [own, ...this.list.filter(entry => entry !== own)]
  }

  /** Lets a new caller be counted by all limits that could not continue the counts of another one without a loss. */
  joinOthers(own: Entry): void {
    const { stated, isEager, versions, limit } = this.rule
    if (stated) {
      if (!isEager || this.list.length > 1 || !this.#isStated(own)) return
      for (const other of stated) {
        if (other.mark !== own.limit.mark) this.#add(joiningOf(other, this.#now, [own]), own.joinedAt, this.#now)
      }
      return
    }
    for (const { limit: version, usedAt } of versions) {
      if (version.mark === limit.mark || this.list.length >= MOST_VERSIONS) continue
      if (this.list.some(entry => entry.limit.mark === version.mark)) continue
      const entry = joiningOf(version, this.#now, this.list)
      this.#add(entry, this.#isFresh ? -1 : entry.joinedAt, Math.min(this.#now, usedAt))
      if (entry.staysUntil <= this.#now) this.list.pop()
    }
  }

  /** Lets a changed limit join, so that what is taken back is taken back from it, too. */
  continueChanged(): void {
    if (this.rule.since < 0 || this.rule.stated || this.list.length === 0) return
    const { own } = this
    if (own === this.#joining) this.#join(own)
  }

  /** Records in all other entries a call that one has admitted to pass after `wait`. */
  recordInOthers(own: Entry, cost: number, wait: number): void {
    const staying = [own]
    const isPlan = this.rule.stated !== undefined
    if (own.owesUntil > this.#now) own.owesUntil += payUs(own.limit.meters[0]!, cost)
    for (const entry of this.list) {
      const isNeeded = entry.staysUntil >= this.#now || entry.owesUntil > this.#now || !isKnownTo(staying, entry)
      if (entry === own || (isPlan && !isNeeded) || !this.#isStated(entry)) continue
      staying.push(entry)
      this.record(entry, own, cost, wait, isPlan)
    }
    this.list = staying
    if (staying.length === 1) own.owesUntil = 0
  }

  /** How long until a call fits beside what its limit has to pay: until that is paid, or another limit of the caller admits the call. */
  delayOwing(own: Entry, cost: number, delay: number): number {
    if (cost === 0 || own.owesUntil <= this.#now || this.list.length < 2) return delay
    const waits = this.list.map(({ limit, state, owesUntil }) => {
      return Math.max(owesUntil - this.#now, limit.meters[0]!.delay(state, limit.offsets[0]!, this.#now, cost))
    })
    return Math.max(delay, Math.min(...waits))
  }

  /** Returns what a limit has left that may have to pay. */
  remainingOwing(own: Entry, remaining: number): number {
    if (own.owesUntil <= this.#now || this.list.length < 2) return remaining
    const free = this.list.filter(({ owesUntil }) => owesUntil <= this.#now)
    const rooms = free.map(({ limit, state }) => limit.meters[0]!.remaining(state, limit.offsets[0]!, this.#now))
    return Math.min(remaining, Math.max(0, ...rooms))
  }

  /** Records a call in one entry; more than a limit ever admits at once in parts, each of which can be counted ahead. */
  record(entry: Entry, own: Entry, cost: number, delay: number, isPlan = false): void {
    const mayOwe = isPlan && this.#isStated(own)
    for (const [meter, at] of levelsOf(entry)) {
      if (mayOwe && periodOf(meter) < periodOf(own.limit.meters[0]!)) this.#owe(entry, meter, at, cost)
      const carries = this.#carries(meter, own, isPlan)
      for (const part of partsOf(cost, meter)) {
        recordCall(meter, entry.state, at, { now: this.#now, cost: part, delay, carries })
      }
    }
  }

  /** True if a burst of a slower limit is not to come on top of what a meter admits. */
  #carries(meter: Meter, own: Entry, isPlan: boolean): boolean {
    return isFaster(meter, own.limit.meters) && !(isPlan && meter.rate?.windowUs !== undefined)
  }

  /** Notes that a longer window admits a call for which a shorter one has no room, or has had none before. */
  #owe(entry: Entry, meter: Meter, at: number, cost: number): void {
    const { windowUs } = meter.rate ?? {}
    if (windowUs === undefined) return
    if (entry.owesUntil <= this.#now && meter.delay(entry.state, at, this.#now, cost) === 0) return
    // the window may be full now, and is again once all is paid
    const from = entry.owesUntil > this.#now ? entry.owesUntil : this.#now + 2 * windowUs
    entry.owesUntil = from + payUs(meter, cost)
  }

  /** Records in one level of another entry a cost that an entry has counted beyond a reservation. */
  recordPart(own: Entry, entry: Entry, [meter, at]: readonly [meter: Meter, at: number], cost: number): void {
    const carries = this.#carries(meter, own, this.rule.stated !== undefined)
    recordCall(meter, entry.state, at, { now: this.#now, cost, delay: 0, carries })
  }

  /** Refunds in all entries what one of them has admitted at `moment`, as of `at`. */
  refund(at: number, cost: number, moment: number): void {
    for (const entry of this.list) {
      const isOwn = entry.limit.mark === this.rule.limit.mark && !this.rule.stated
      const since = isOwn && entry.joinedAt < 0 ? this.rule.countsSince : entry.joinedAt
      for (const [meter, place] of levelsOf(entry)) {
        meter.refund(entry.state, place, Math.max(at, since), cost, moment, since)
      }
    }
  }

  get #changedAt(): number {
    const { stated, since } = this.rule
    return !stated && since >= 0 ? Math.min(this.#now, since) : this.#now
  }

  #isStated({ limit }: Entry): boolean {
    return this.rule.stated?.some(({ mark }) => mark === limit.mark) ?? true
  }

  /** Entries that all are idle are as good as none. */
  #dropIdle(): void {
    if (this.idleAt <= this.#now) this.list = []
  }

  /** Versions of a rule that are not used any more leave. */
  #dropOld(): void {
    this.list = this.list.filter((entry, place) => place === 0 || entry.staysUntil > this.#now)
  }

  #add(entry: Entry, joinedAt: number, leftAt: number): void {
    entry.joinedAt = joinedAt
    this.list.push(entry)
    this.#leave(entry, leftAt)
  }

  /** Notes until when an entry stays: a while; or, if no other one counts over as long a period, for its own. */
  #leave(entry: Entry, at: number): void {
    const isShort = !this.rule.stated && isKnownTo(this.list, entry)
    entry.staysUntil = at + Math.max(KEPT_US, isShort ? 0 : longestPeriodOf(entry.limit))
  }

  /** Puts an entry in front of the others; those of limits that the rule does not state leave. */
  #join(own: Entry): void {
    const [first] = this.list
    const staying = this.rule.forgetsLimits ? [] : this.list.filter(entry => this.#isStated(entry))
    this.list = [own, ...staying]
    if (first) this.#leave(first, this.#changedAt)
    while (!this.rule.stated && this.list.length > MOST_VERSIONS) {
      const others = this.list.slice(1)
      const least = others.reduce((one, other) => (other.staysUntil < one.staysUntil ? other : one))
      this.list = this.list.filter(entry => entry !== least)
    }
    this.#joining = undefined
    this.#isFresh = first === undefined
  }
}

/** Returns how long a meter takes to admit a cost in the long run. */
function payUs(meter: Meter, cost: number): number {
  return Math.ceil(cost / (meter.rate?.perUs ?? 0))
}

/** Each meter of an entry, and where its numbers begin. */
export function levelsOf({ limit: { meters, offsets } }: Entry): [meter: Meter, at: number][] {
  return meters.map((meter, level) => [meter, offsets[level]!])
}

function idleAtOf(entry: Entry): number {
  return Math.max(...levelsOf(entry).map(([meter, at]) => meter.idleAt(entry.state, at)))
}

function longestPeriodOf({ meters }: LedgerLimit): number {
  return Math.max(0, ...meters.map(periodOf))
}

function periodOf({ migrate }: Meter): number {
  return migrate?.scale[0] ?? 0
}

/** True if another one of some entries knows as much as an entry does. */
function isKnownTo(entries: readonly Entry[], entry: Entry): boolean {
  const period = longestPeriodOf(entry.limit)
  return entries.some(other => other !== entry && longestPeriodOf(other.limit) >= period)
}

/**
 * Makes an entry for a limit that the caller has not had, which continues the counts of the others as of `at`. A bucket continues the
 * fullest: none of them may be refilled by a change.
 */
function joiningOf(limit: LedgerLimit, at: number, entries: readonly Entry[]): Entry {
  const state = new Float64Array(limit.stride)
  limit.meters.forEach((meter, level) => {
    const sources = sourcesOf(entries, meter, level)
    const continued = sources.map(source => continuedBy(meter, source, at))
    const found = continued.reduce<Float64Array | undefined>((one, other) => {
      if (one === undefined || other === undefined) return one ?? other
      return meter.idleAt(other, 0) > meter.idleAt(one, 0) ? other : one
    }, undefined)
    if (found) state.set(found, limit.offsets[level]!)
  })
  return { limit, joinedAt: entries.length > 0 ? at : -1, staysUntil: 0, owesUntil: 0, state }
}

/** A level of an entry, with its numbers. */
interface Source {
  readonly entry: Entry
  readonly meter: Meter
  readonly numbers: Float64Array
}

/** Returns what a meter makes of the numbers of another one; undefined if they count nothing, or nothing that can be continued. */
function continuedBy(meter: Meter, { meter: previous, numbers }: Source, at: number): Float64Array | undefined {
  if (numbers.every(number => number === 0)) return undefined
  if (hasScaleOf(meter, previous)) return numbers
  if (meter.migrate === undefined) return undefined
  const state = new Float64Array(meter.slots)
  meter.migrate.inherit(numbers, previous.migrate?.scale ?? [], state, 0, at)
  return state
}

/**
 * The levels that a new one may continue. A window continues that of the limit that was used last; unless that has forgotten what the
 * window of another limit, of a longer period, still knows.
 */
function sourcesOf(entries: readonly Entry[], meter: Meter, level: number): readonly Source[] {
  const all = entries.flatMap((entry): Source[] => {
    const place = sourceLevelIn(entry.limit, meter, level)
    const source = entry.limit.meters[place]
    if (source === undefined) return []
    const at = entry.limit.offsets[place]!
    return [{ entry, meter: source, numbers: entry.state.slice(at, at + source.slots) }]
  })
  if (meter.rate?.windowUs === undefined) return all
  const period = periodOf(meter)
  let found: Source | undefined
  for (const source of all) {
    const [length, known] = [periodOf(source.meter), found ? periodOf(found.meter) : 0]
    const isBetter = known < period ? length > known : length >= period && length < known
    if (found && !((found.entry !== entries[0] || known < period) && isBetter)) continue
    found = source
  }
  return found ? [found] : []
}

/** The level of a limit whose counts a new one continues; -1 if the limit counts by another algorithm. */
function sourceLevelIn({ meters }: LedgerLimit, meter: Meter, level: number): number {
  const isAlike = (other: Meter): boolean =>
    isKin(meter, other) && other.migrate?.scale.length === meter.migrate?.scale.length
  return meters.every(isAlike) ? sourceLevelOf(meter, level, meters) : -1
}
