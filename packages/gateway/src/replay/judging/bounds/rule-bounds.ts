import type { CompiledRule } from 'diana-limiter/gateway'
import type { RuleFigures } from '../../figures/figures.ts'
import { BlockBounds } from './block-bounds.ts'
import type { Uncertainty } from './floor.ts'
import { createLevels, fixedCostOf, type LevelBounds } from './level-bounds.ts'
import { PassingUnits } from './passing-units.ts'

/** The longest that a call is assumed to last if the log does not say it: the time after which nginx gives up by default. */
export const LONGEST_CALL_US = 60_000_000

/** The answer to the question if a call counts, by how it ended. */
export type Counts = 'yes' | 'no' | 'unknown'

/** The calls of one caller in one tick. */
export interface CallerTick {
  readonly slot: number
  calls: number
  /** The cost of the calls together that may count by how they ended; their number if they all cost the same. */
  units: number
  /** The cost of the calls that surely count. */
  counted: number
  /** The part of it that no other rule can have refused. */
  alone: number
  /** The cost that the floors had no room for. */
  refused: number
}

/** Bounds what one rule can have refused, at the least and at the most. */
export class RuleBounds {
  readonly rule: CompiledRule
  readonly figures: RuleFigures
  readonly levels: readonly LevelBounds[]
  readonly #fixedCost: number | undefined
  readonly #blocks: BlockBounds | undefined
  /** Calls that do not count by how they ended: they were charged until then. Undefined if all calls count. */
  readonly #passing: PassingUnits | undefined
  readonly #widthUs: number
  #tick: CallerTick[] = []
  readonly #ticks: (CallerTick | undefined)[] = []
  #smallest = Number.POSITIVE_INFINITY
  #largest = 1
  /** By level and slot. */
  readonly #leastUnits: number[][]
  readonly #mostUnits: number[] = []
  readonly #hotCalls: number[] = []
  readonly #sure: number[] = []
  readonly #notAdded: number[] = []
  readonly #diverged: boolean[] = []
  readonly #leastOfAll: number[]

  constructor(rule: CompiledRule, figures: RuleFigures, uncertainty: Uncertainty) {
    this.rule = rule
    this.figures = figures
    this.levels = createLevels(rule, uncertainty)
    this.#fixedCost = fixedCostOf(rule)
    this.#widthUs = uncertainty.widthUs + uncertainty.aheadUs
    this.#leastUnits = this.levels.map(() => [])
    this.#leastOfAll = this.levels.map(() => 0)
    const longestWaitUs = Math.max(0, ...rule.meters.map(({ maxWaitUs }) => (rule.queueSize > 0 ? maxWaitUs : 0)))
    if (rule.countWhen) this.#passing = new PassingUnits(longestWaitUs, uncertainty)
    if (!rule.blockMs) return
    const blockUs = { least: rule.blockMs * 1000, most: this.#longestBlockUs }
    this.#blocks = new BlockBounds(blockUs, this.#floorMemoryUs, uncertainty)
  }

  /** Returns how long a caller matters after their last call. */
  get memoryUs(): number {
    return Math.max(this.#floorMemoryUs, this.#passing?.memoryUs ?? 0) + this.#longestBlockUs + 2 * this.#widthUs
  }

  get #longestBlockUs(): number {
    const { blockMs = 0, blockGrowth } = this.rule
    return (blockGrowth?.maxMs ?? blockMs) * 1000
  }

  /** The least that was refused, if the other rules refused nothing. */
  get leastOfAll(): number {
    return Math.max(0, ...this.#leastOfAll.map(units => this.#callsOfLeast(units)))
  }

  /** True if a call of this cost can never pass. */
  isTooLarge(cost: number): boolean {
    for (const { largest } of this.levels) if (cost > largest) return true
    return false
  }

  /** Returns what a call adds to a caller's units. */
  unitsOf(cost: number): number {
    return this.#fixedCost === undefined ? cost : cost === 0 ? 0 : 1
  }

  /** Adds a call that came at x. A duration that is not known is NaN. */
  add(slot: number, x: number, cost: number, counts: Counts, durationUs: number): void {
    let tick = this.#ticks[slot]
    if (tick === undefined) {
      tick = { slot, calls: 0, units: 0, counted: 0, alone: 0, refused: 0 }
      this.#ticks[slot] = tick
      this.#tick.push(tick)
    }
    const units = this.unitsOf(cost)
    const lastsUs = Number.isNaN(durationUs) ? LONGEST_CALL_US : durationUs
    tick.calls++
    if (counts !== 'no' || !this.#passing?.add(slot, x, units, lastsUs)) tick.units += units
    if (counts === 'yes') tick.counted += units
    if (this.#fixedCost === undefined && cost > 0) {
      if (cost < this.#smallest) this.#smallest = cost
      if (cost > this.#largest) this.#largest = cost
    }
    for (const { slots } of this.levels) if (slots) tick.refused += slots.add(slot, x, cost, lastsUs) ? units : 0
  }

  /** Ends x after all of its calls have been added; returns their callers. */
  close(x: number): readonly CallerTick[] {
    const closed = this.#tick
    this.#tick = []
    for (const tick of closed) {
      const { slot } = tick
      this.#ticks[slot] = undefined
      for (const { floor } of this.levels) if (floor) tick.refused += floor.offer(slot, x, tick.units, this.#largest)
      this.figures.callers.came(slot, x, tick.calls)
    }
    return closed
  }

  /** True if calls of a caller that came at x may have been refused; to be asked once all calls are known that may have come before. */
  mayRefuse(slot: number, x: number): boolean {
    let mayRefuse = false
    for (const { floor, slots } of this.levels) {
      // calls that do not count are charged while they last
      if ((floor ?? slots!).excess(slot) + (floor && this.#passing ? this.#passing.at(slot, x) : 0) > 0)
        mayRefuse = true
    }
    return this.#blocks === undefined ? mayRefuse : this.#blocks.mayRefuse(slot, x, mayRefuse)
  }

  /** True if the caller was surely blocked at x. */
  isBlocked(slot: number, x: number): boolean {
    return this.#blocks?.isBlocked(slot, x) ?? false
  }

  /** Counts what was refused of a caller's calls at x, once `alone` is known. */
  settle(tick: CallerTick, x: number, isHot: boolean): void {
    const { slot } = tick
    if (tick.alone < tick.counted && !this.#diverged[slot]) this.#diverge(slot)
    let refusesMore = false
    for (let level = 0; level < this.levels.length; level++) {
      const { ceiling, ceilingOfAll } = this.levels[level]!
      if (ceiling === undefined) continue
      const refused = ceiling.offer(slot, x, tick.alone)
      this.#leastOfAll[level]! += this.#diverged[slot] ? ceilingOfAll!.offer(slot, x, tick.counted) : refused
      if (refused === 0) continue
      this.#leastUnits[level]![slot] = (this.#leastUnits[level]![slot] ?? 0) + refused
      refusesMore = true
    }
    if (refusesMore) this.#blocks?.begin(slot, x)
    if (isHot) this.#hotCalls[slot] = (this.#hotCalls[slot] ?? 0) + tick.calls
    if (tick.refused > 0) this.#mostUnits[slot] = (this.#mostUnits[slot] ?? 0) + tick.refused
    if (isHot || refusesMore || this.figures.callers.isFollowed(slot)) this.#report(slot, x, tick.calls)
  }

  /** Records that a call was refused for sure; `wasAdded` says whether it is among those that were added. */
  refuseSurely(slot: number, x: number, wasAdded: boolean): void {
    this.#sure[slot] = (this.#sure[slot] ?? 0) + 1
    if (!wasAdded) {
      this.#notAdded[slot] = (this.#notAdded[slot] ?? 0) + 1
      // it blocks its caller as any other refusal does
      this.#blocks?.mayRefuse(slot, x, true)
    }
    this.#report(slot, x, wasAdded ? 0 : 1)
  }

  forget(slot: number): void {
    for (const { floor, ceiling, ceilingOfAll, slots } of this.levels) {
      floor?.forget(slot)
      ceiling?.forget(slot)
      ceilingOfAll?.forget(slot)
      slots?.forget(slot)
    }
    this.#blocks?.forget(slot)
    this.#passing?.forget(slot)
    for (const units of this.#leastUnits) units[slot] = 0
    this.#mostUnits[slot] = 0
    this.#hotCalls[slot] = 0
    this.#sure[slot] = 0
    this.#notAdded[slot] = 0
    this.#diverged[slot] = false
  }

  get #floorMemoryUs(): number {
    return Math.max(0, ...this.levels.map(({ floor }) => floor?.memoryUs ?? 0))
  }

  /** Records that from now on some calls of the caller may have been refused by other rules. */
  #diverge(slot: number): void {
    this.#diverged[slot] = true
    for (const { ceiling, ceilingOfAll } of this.levels) if (ceiling) ceilingOfAll!.copy(slot, slot, ceiling)
  }

  #callsOfLeast(units: number): number {
    return this.#fixedCost === undefined ? Math.ceil(units / this.#largest) : units
  }

  #mostOf(slot: number): number {
    const hot = this.#hotCalls[slot] ?? 0
    // calls of a blocked caller are refused whatever fits, and calls that do not count take permits for a time
    if (this.#blocks || this.#passing) return hot
    const units = this.#mostUnits[slot] ?? 0
    const smallest = Math.max(1, Math.min(this.#smallest, this.#largest))
    return Math.min(hot, this.#fixedCost === undefined ? Math.floor(units / smallest) : units)
  }

  /** Writes what is new of a caller into the figures. */
  #report(slot: number, x: number, calls: number): void {
    const { callers, timeline } = this.figures
    let units = 0
    for (const level of this.#leastUnits) units = Math.max(units, level[slot] ?? 0)
    const least = Math.max(callers.least[slot]!, this.#callsOfLeast(units) + (this.#sure[slot] ?? 0))
    const most = Math.max(callers.most[slot]!, this.#mostOf(slot) + (this.#notAdded[slot] ?? 0), least)
    const [moreLeast, moreMost] = [least - callers.least[slot]!, most - callers.most[slot]!]
    callers.least[slot] = least
    callers.most[slot] = most
    if (moreMost > 0 || moreLeast > 0) timeline.add(x, 0, moreLeast, moreMost)
    if (most > 0) callers.refused(slot, x, calls, moreLeast, moreMost)
  }
}
