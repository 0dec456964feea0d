import type { Meter } from '../algorithms/algorithm.ts'

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

/** What the new meters make of the `slots` states in a chunk of the old ones; the chunk itself stays as it is. */
export function inheritStates(
  chunk: Float64Array,
  slots: number,
  before: Layout,
  after: Layout,
  now: number,
): Float64Array {
  const states = new Float64Array(slots * after.stride)
  after.meters.forEach((meter, level) => {
    const ancestor = ancestorOf(meter, level, before.meters)
    const elder = before.meters[ancestor]
    if (elder === undefined) return
    const isKept = hasScaleOf(meter, elder)
    if (!isKept && !meter.inherit) return
    const old = new Float64Array(elder.slots)
    for (let slot = 0; slot < slots; slot++) {
      const from = slot * before.stride + before.offsets[ancestor]!
      const to = slot * after.stride + after.offsets[level]!
      if (!copyState(chunk, from, old)) continue
      if (isKept) states.set(old, to)
      else meter.inherit?.(old, elder.scale ?? [], states, to, now)
    }
  })
  return states
}

/** Whether meters in the same order read the same states as before. */
export function isSameLayout(before: Layout, after: Layout): boolean {
  if (before.meters.length !== after.meters.length) return false
  return after.meters.every((meter, level) => hasScaleOf(meter, before.meters[level]!))
}

/**
 * The level whose counts a new one goes on with: that of its period; else the next longer one, which knows all of the
 * calls that matter; else the longest.
 */
function ancestorOf({ scale }: Meter, level: number, before: readonly Meter[]): number {
  const periods = before.map(meter => meter.scale?.[0])
  const period = scale?.[0]
  if (period === undefined || periods.includes(undefined) || periods[level] === period) return level
  const known = periods as number[]
  const longer = known.filter(other => other >= period)
  return known.indexOf(longer.length > 0 ? Math.min(...longer) : Math.max(...known))
}

function hasScaleOf({ slots, scale }: Meter, other: Meter): boolean {
  if (scale === undefined || slots !== other.slots || scale.length !== other.scale?.length) return false
  return scale.every((number, i) => number === other.scale![i])
}

/** Copies one state; false if it is that of a key never seen. */
function copyState(chunk: Float64Array, from: number, state: Float64Array): boolean {
  let isKnown = false
  for (let i = 0; i < state.length; i++) {
    state[i] = chunk[from + i]!
    if (state[i] !== 0) isKnown = true
  }
  return isKnown
}
