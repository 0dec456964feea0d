import type { Meter } from '../../algorithms/algorithm.ts'

/** Where the numbers of each meter begin within a slot. */
export interface Layout {
  readonly meters: readonly Meter[]
  readonly offsets: readonly number[]
  readonly stride: number
}

export function layOut(meters: readonly Meter[]): Layout {
  let stride = 0
  const offsets = meters.map(meter => {
    const offset = stride
    stride += meter.slots
    return offset
  })
  return { meters, offsets, stride }
}

/** Which numbers of the old meters those of the new ones come from. */
export function inheritMoves(before: Layout, after: Layout): LevelMove[] {
  return after.meters.map((meter, level): LevelMove => {
    const ancestor = sourceLevelOf(meter, level, before.meters)
    const sources = [{ previous: before.meters[ancestor]!, from: before.offsets[ancestor]! }]
    return { meter, to: after.offsets[level]!, sources: ancestor < before.meters.length ? sources : [] }
  })
}

/** What the new meters make of the `slots` states in a chunk of the old ones; the chunk itself stays as it is. */
export function inheritStates(
  chunk: Float64Array,
  slots: number,
  before: Layout,
  after: Layout,
  now: number,
): Float64Array {
  return moveStates(chunk, slots, before.stride, after.stride, inheritMoves(before, after), now)
}

/** Numbers of a slot that another meter may continue: those of the `previous` meter at `from`. */
export interface StateSource {
  readonly previous: Meter
  readonly from: number
}

/** Which numbers of a slot become those of a meter at `to`: of several sources, what matters for longest. */
export interface LevelMove {
  readonly meter: Meter
  readonly to: number
  readonly sources: readonly StateSource[]
}

/** What meters make of the `slots` states in a chunk; the chunk itself stays as it is. */
export function moveStates(
  chunk: Float64Array,
  slots: number,
  stride: number,
  newStride: number,
  moves: readonly LevelMove[],
  now: number,
): Float64Array {
  const states = new Float64Array(slots * newStride)
  for (const { meter, to, sources } of moves) {
    for (let slot = 0; slot < slots; slot++) {
      const found = continued(meter, sources, chunk, slot * stride, now)
      if (found) states.set(found, slot * newStride + to)
    }
  }
  return states
}

/** The state of a meter that continues one of the sources, that which matters for longest; undefined if there is none. */
export function continued(
  meter: Meter,
  sources: readonly StateSource[],
  numbers: ArrayLike<number>,
  base: number,
  now: number,
): Float64Array | undefined {
  let found: Float64Array | undefined
  for (const { previous, from } of sources) {
    const isKept = meter === previous || hasScaleOf(meter, previous)
    if (!isKept && !(meter.migrate && isKin(meter, previous))) continue
    const old = new Float64Array(previous.slots)
    if (!copyState(numbers, base + from, old)) continue
    const state = isKept ? old : new Float64Array(meter.slots)
    if (!isKept) meter.migrate?.inherit(old, previous.migrate?.scale ?? [], state, 0, now)
    if (found === undefined || meter.idleAt(state, 0) > meter.idleAt(found, 0)) found = state
  }
  return found
}

/** Whether meters in the same order read the same states as before. */
export function isSameLayout(before: Layout, after: Layout): boolean {
  if (before.meters.length !== after.meters.length) return false
  return after.meters.every((meter, level) => hasScaleOf(meter, before.meters[level]!))
}

/**
 * The level whose counts a new one continues: that of its period; else the next longer one, which knows all of the
 * calls that matter; else the longest.
 */
export function sourceLevelOf({ migrate }: Meter, level: number, before: readonly Meter[]): number {
  const periods = before.map(meter => meter.migrate?.scale[0])
  const period = migrate?.scale[0]
  if (period === undefined || periods.includes(undefined) || periods[level] === period) return level
  const known = periods as number[]
  const longer = known.filter(other => other >= period)
  return known.indexOf(longer.length > 0 ? Math.min(...longer) : Math.max(...known))
}

/** Whether meters are of one algorithm, so that one can continue the counts of the other. */
export function isKin(one: Meter, other: Meter): boolean {
  return one.constructor === other.constructor && one.redis?.lua.name === other.redis?.lua.name
}

export function hasScaleOf(meter: Meter, other: Meter): boolean {
  const scale = meter.migrate?.scale
  const otherScale = other.migrate?.scale
  if (!isKin(meter, other)) return false
  if (scale === undefined || meter.slots !== other.slots || scale.length !== otherScale?.length) return false
  return scale.every((number, i) => number === otherScale[i])
}

/** Copies one state; false if it is that of a key never seen. */
function copyState(chunk: ArrayLike<number>, from: number, state: Float64Array): boolean {
  let isKnown = false
  for (let i = 0; i < state.length; i++) {
    state[i] = chunk[from + i]!
    if (state[i] !== 0) isKnown = true
  }
  return isKnown
}
