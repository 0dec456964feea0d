import { type Block, capacityOf, type Meter } from '../algorithms/algorithm.ts'
import type { Table } from './memory/table.ts'

/** What a store has to learn of one level: that `known` or more is used, and that `missing` was admitted besides. */
export interface LevelCatchUp {
  readonly known: number
  readonly missing: number
  /**
   * For a window: how much of both still counts later, the earliest moment first, and nothing after the last. A store that does not read
   * this counts all of it as of now, so that callers get it back up to a period too late.
   */
  readonly later?: readonly LaterCount[] | undefined
}

/** How much of a level still counts `afterUs` microseconds from now. */
export interface LaterCount {
  readonly afterUs: number
  readonly known: number
  readonly missing: number
}

/** What a store has to learn of one key that it has not counted, or has forgotten. */
export interface CatchUp<Counter> {
  readonly counter: Counter
  readonly key: string
  readonly levels: readonly LevelCatchUp[]
  /** What did not fit into each level; the store writes it. */
  readonly unfit: number[]
}

/** A window is looked at in this many moments to learn when its calls leave. */
export const WINDOW_SLICES = 20

/** Counts in a slot of a table what it has to learn, as far as it fits; the rest is written into `unfit`. */
export function catchUpTable(
  table: Pick<Table, 'meters' | 'offsets' | 'state' | 'base'>,
  slot: number,
  { levels, unfit }: Pick<CatchUp<unknown>, 'levels' | 'unfit'>,
  now: number,
): void {
  table.meters.forEach((meter, level) => {
    const missed = levels[level] ?? { known: 0, missing: 0 }
    unfit[level] = catchUpLevel(
      { meter, state: table.state(slot), at: table.base(slot) + table.offsets[level]! },
      missed,
      now,
    )
  })
}

interface LevelState {
  readonly meter: Meter
  readonly state: Float64Array
  readonly at: number
}

/** Counts what a level has missed, as far as it fits beside what processes hold in advance; returns what does not. */
export function catchUpLevel(one: LevelState, missed: LevelCatchUp, now: number, held = 0): number {
  const { meter, state, at } = one
  const { known, later = [] } = missed
  if (isBlock(meter)) {
    if (known > 0) meter.take(state, at, now, known, 0)
    return 0
  }
  const { due, room, used } = dueOf(one, missed, now, held)
  const taken = Math.min(due, room)
  if (later.length > 0 && meter.migrate?.insert) insertCalls(one, missed, now)
  else if (taken > 0 && later.length > 0 && beginsWithCall(meter, now))
    continueWindow(one, used, taken, now + later.at(-1)!.afterUs)
  else if (taken > 0) meter.take(state, at, now, taken, 0)
  return due - taken
}

/** Returns how much a level has to count, and how much of it is left and used by what it knows. */
export function dueOf(
  { meter, state, at }: LevelState,
  { known, missing }: LevelCatchUp,
  now: number,
  held: number,
): { readonly due: number; readonly room: number; readonly used: number } {
  const room = Math.max(0, meter.remaining(state, at, now) - held)
  const used = capacityOf(meter, now) - room
  return { due: Math.max(0, known - used) + missing, room, used }
}

/**
 * Counts calls among those of a window, each as of the moment at which it was made, or a little later: of those that are known, as many as
 * are more than the window counts, at each moment to come.
 */
function insertCalls({ meter, state, at }: LevelState, missed: LevelCatchUp, now: number): void {
  const windowUs = meter.rate!.windowUs!
  const capacity = capacityOf(meter, now)
  const counts = [{ afterUs: 0, known: missed.known, missing: missed.missing }, ...(missed.later ?? [])]
  const due: { readonly moment: number; readonly cost: number }[] = []
  let inserted = 0
  for (let i = counts.length - 1; i >= 0; i--) {
    const { afterUs, known, missing } = counts[i]!
    const used = capacity - meter.remaining(state, at, now + afterUs)
    const more = Math.min(capacity, Math.max(used, known) + missing) - used
    if (more <= inserted) continue
    const leavesAfterUs = Math.min(windowUs, counts[i + 1]?.afterUs ?? windowUs)
    due.push({ moment: now + leavesAfterUs - windowUs, cost: more - inserted })
    inserted = more
  }
  for (const { moment, cost } of due.reverse()) meter.migrate!.insert!(state, at, now, cost, moment)
}

/** Counts calls in a window that begins with a call: it ends when it was to end. */
function continueWindow({ meter, state, at }: LevelState, used: number, taken: number, endsAt: number): void {
  const end = used > 0 ? Math.min(endsAt, meter.idleAt(state, at)) : endsAt
  state.fill(0, at, at + meter.slots)
  meter.take(state, at, end - meter.rate!.windowUs!, used + taken, 0)
}

/** True if a window that ends all at once begins with a call, and not at moments that are known before. */
export function beginsWithCall(meter: Meter, now: number): boolean {
  return isWindow(meter) && meter.rate?.endsAt?.(new Float64Array(meter.slots), 0, now) === 0
}

/** The moments from now on at which a window is looked at, in microseconds from now: multiples of a slice, and the end of the period. */
export function laterMoments(windowUs: number, now: number): number[] {
  const sliceUs = windowUs / WINDOW_SLICES
  const first = Math.floor(now / sliceUs) + 1
  const moments = Array.from({ length: WINDOW_SLICES }, (_, i) => Math.ceil((first + i) * sliceUs) - now)
  return [...moments.filter(afterUs => afterUs > 0 && afterUs < windowUs), windowUs]
}

/** True if a meter counts nothing but until when a caller is refused. */
export function isBlock(meter: Meter): meter is Block {
  return 'costLasting' in meter
}

/** True if each call leaves a while after it was counted, and none is counted ahead of its time. */
export function isWindow({ rate, maxWaitUs }: Meter): boolean {
  return rate?.windowUs !== undefined && maxWaitUs === 0
}

/** Counts a call that was admitted, whether or not it fits. */
export function record(meter: Meter, state: Float64Array, at: number, now: number, cost: number): void {
  if (meter.migrate?.record) meter.migrate.record(state, at, now, cost, 0, false)
  else meter.take(state, at, now, cost, 0)
}

/** For a meter that refuses until a moment: the cost that sets the same moment again, 0 if it has passed. */
export function costLasting(meter: Meter, state: Float64Array, at: number, now: number): number | undefined {
  if (!isBlock(meter)) return undefined
  const leftUs = meter.delay(state, at, now, 0)
  return leftUs > 0 ? meter.costLasting(leftUs) : 0
}
