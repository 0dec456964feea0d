import type { Meter } from '../../algorithms/algorithm.ts'
import { isKin, isSameLayout, type LevelMove, layOut, type StateSource, sourceLevelOf } from './migrate-states.ts'

/**
 * A rule whose limit has changed may be changed back, and processes without the change continue with the old limit.
 * So a version of a rule that is no longer used is kept for a while, and records all calls meanwhile: for this long; or, if no other
 * version counts over as long a period, for its own period, since no other version could supply later what it has missed.
 */
export const KEPT_US = 60_000_000
/** So many versions are kept at most, the one in use among them. */
export const MOST_VERSIONS = 4

/** A version of a rule's limits, and the offsets of its numbers within a slot of a table. */
export interface RuleVersion {
  readonly meters: readonly Meter[]
  readonly offsets: readonly number[]
  /** Since when it counts all calls; before all moments if the rule was never changed before. */
  readonly changedAt: number
  /** Until when it is kept though another one is in use. */
  readonly until: number
}

/** The versions of a table, the one that is in use first and then those that were used last. */
export interface RuleVersions {
  readonly all: readonly RuleVersion[]
  readonly used: RuleVersion
  readonly stride: number
}

export function onlyVersion(meters: readonly Meter[], changedAt: number): RuleVersions {
  const { offsets, stride } = layOut(meters)
  const used = { meters, offsets, changedAt, until: 0 }
  return { all: [used], used, stride }
}

/** The versions after another one has been put to use at `now`, and how the states of keys become theirs. */
export function useVersion(
  { all: listed, used }: RuleVersions,
  meters: readonly Meter[],
  now: number,
): { versions: RuleVersions; moves: LevelMove[] } {
  const all = listed.filter(version => version === used || version.until > now)
  const found = all.find(version => isSameLayout(layOut(version.meters), layOut(meters)))
  const joining: RuleVersion = { meters, offsets: [], changedAt: now, until: 0 }
  const candidates = found ? all : [...all, joining]
  let staying = all.flatMap(version => {
    if (version === found) return [version]
    const until = version === used ? now + livesFor(version, candidates) : version.until
    return until > now ? [{ ...version, until }] : []
  })
  while (staying.length + (found ? 0 : 1) > MOST_VERSIONS) {
    const others = staying.filter(version => version !== found)
    const first = others.reduce((one, other) => (other.until < one.until ? other : one))
    staying = staying.filter(version => version !== first)
  }
  const moves: LevelMove[] = []
  let stride = 0
  const place = (version: RuleVersion, sourcesOf: (meter: Meter, level: number) => readonly StateSource[]) => {
    const offsets = version.meters.map((meter, level) => {
      const to = stride
      stride += meter.slots
      moves.push({ sources: sourcesOf(meter, level), meter, to })
      return to
    })
    return { ...version, offsets }
  }
  const placed = staying.map(version => {
    const after = place(version, (previous, level) => [{ previous, from: version.offsets[level]! }])
    return version === found ? { ...after, meters, until: 0 } : after
  })
  const next = found
    ? placed[staying.indexOf(found)]!
    : place(joining, (meter, level) => ancestors(all, used, meter, level))
  return { versions: { all: [next, ...placed.filter(version => version !== next)], used: next, stride }, moves }
}

/** The versions without those that are kept no longer; undefined if all stay. */
export function withoutPast(
  { all, used }: RuleVersions,
  now: number,
): { versions: RuleVersions; moves: LevelMove[] } | undefined {
  if (all.every(version => version === used || version.until > now)) return undefined
  const moves: LevelMove[] = []
  let stride = 0
  let next = used
  const placed = all
    .filter(version => version === used || version.until > now)
    .map(version => {
      const offsets = version.meters.map((meter, level) => {
        moves.push({ meter, to: stride, sources: [{ previous: meter, from: version.offsets[level]! }] })
        stride += meter.slots
        return stride - meter.slots
      })
      const after = { ...version, offsets }
      if (version === used) next = after
      return after
    })
  return { versions: { all: placed, used: next, stride }, moves }
}

/** A call that another limit has admitted to pass after `delay`; what does not fit is counted as late as it does if `carries` is true. */
export interface RecordedCall {
  readonly now: number
  readonly cost: number
  readonly delay: number
  readonly carries: boolean
}

/** True if a meter admits more in the long run than the levels of a limit: no burst of theirs is to come on top of what it admits. */
export function isFaster(meter: Meter, own: readonly Meter[]): boolean {
  return (meter.rate?.perUs ?? 0) > Math.min(...own.map(({ rate }) => rate?.perUs ?? Number.POSITIVE_INFINITY))
}

/** Counts a call that other levels have admitted. */
export function recordCall(
  meter: Meter,
  state: Float64Array,
  at: number,
  { now, cost, delay, carries }: RecordedCall,
): void {
  if (meter.migrate?.record) {
    meter.migrate.record(state, at, now, cost, delay, carries)
    return
  }
  const fitsIn = carries ? meter.delay(state, at, now, cost) : 0
  meter.take(state, at, now, cost, Number.isFinite(fitsIn) ? Math.max(delay, fitsIn) : delay)
}

/**
 * The levels whose counts a new one continues. A window continues that of the version used last, unless that has forgotten what the
 * window of another one, of a longer period, still knows. A bucket continues the fullest: none of them may be refilled by a change.
 */
function ancestors(all: readonly RuleVersion[], used: RuleVersion, meter: Meter, level: number): StateSource[] {
  const kin = all.filter(({ meters }) => meters.every(other => isKin(meter, other)))
  const sourceIn = (meters: readonly Meter[], offsets: readonly number[], place: number): StateSource[] => {
    const at = sourceLevelOf(meter, place, meters)
    return meters[at] ? [{ previous: meters[at], from: offsets[at]! }] : []
  }
  if (meter.rate?.windowUs === undefined) return kin.flatMap(({ meters, offsets }) => sourceIn(meters, offsets, level))
  const own = kin.includes(used) ? sourceIn(used.meters, used.offsets, level) : []
  const known = own[0]?.previous.migrate?.scale[0] ?? 0
  if (known >= (meter.migrate?.scale[0] ?? 0)) return own
  const meters = kin.flatMap(version => version.meters)
  const other = sourceIn(
    meters,
    kin.flatMap(version => version.offsets),
    -1,
  )
  return (other[0]?.previous.migrate?.scale[0] ?? 0) > known ? other : own
}

function livesFor(version: RuleVersion, all: readonly RuleVersion[]): number {
  const longest = longestOf(version)
  const isKnownToOthers = all.some(other => other !== version && longestOf(other) >= longest)
  return isKnownToOthers ? KEPT_US : Math.max(KEPT_US, longest)
}

function longestOf({ meters }: RuleVersion): number {
  return Math.max(0, ...meters.map(({ migrate }) => migrate?.scale[0] ?? 0))
}
