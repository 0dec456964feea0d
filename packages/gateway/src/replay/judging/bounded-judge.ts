import type { Call } from 'diana-limiter'
import type { CompiledRule, ReplayLimiter } from 'diana-limiter/gateway'
import { createRuleFigures, type RuleFigures, refusedBy, TotalFigures } from '../figures/figures.ts'
import type { Uncertainty } from './bounds/floor.ts'
import { type CallerTick, type Counts, RuleBounds } from './bounds/rule-bounds.ts'
import type { Judge, JudgeOptions, LoggedCall } from './judge.ts'

/** The calls of one tick: for each its rules, with slot and units, and an end mark. */
interface Tick {
  readonly x: number
  calls: number
  words: Int32Array
  length: number
  /** Calls that there was no room to keep. */
  unknown: number
  closed: readonly (readonly CallerTick[])[]
}

const MOST_WORDS = 1 << 22
const END = -1
const NO_SLOT = -2

/**
 * Judges calls whose moments are known only to a tick, such as a second: how many each rule and all of them together have refused at
 * the least and at the most, whatever the order and the moments of calls were. Ticks never run backwards.
 *
 * Calls that no other rule can have refused are surely refused by a rule as far as they exceed its ceiling; calls for which all
 * rules surely had room were admitted. In between is what the log does not say.
 */
export class BoundedJudge implements Judge {
  readonly total: TotalFigures = new TotalFigures()
  readonly rules: readonly RuleFigures[]
  readonly #replay: ReplayLimiter
  readonly #bounds: readonly RuleBounds[]
  readonly #indexOf: ReadonlyMap<CompiledRule, number>
  readonly #uncertainty: Uncertainty
  readonly #found: CompiledRule[] = []
  #tick: Tick = newTick(Number.NEGATIVE_INFINITY)
  /** Ticks whose calls may have come after later ones. */
  readonly #open: Tick[] = []
  /** True, by rule and slot, if calls of the tick may have been refused. */
  readonly #hot: boolean[][]
  /** By rule and slot: the callers of the tick that is settled. */
  readonly #callers: CallerTick[][]
  /** True if any call can cost more than a rule ever admits. */
  readonly #hasTooLarge: boolean
  #hotCalls = 0
  #sure = 0

  constructor(replay: ReplayLimiter, uncertainty: Uncertainty, { maxKeys }: JudgeOptions) {
    this.#replay = replay
    this.#uncertainty = uncertainty
    const { rules } = replay
    this.#indexOf = new Map(rules.map((rule, index) => [rule, index]))
    this.#bounds = rules.map(rule => {
      const figures: RuleFigures = createRuleFigures(rule, uncertainty.widthUs, maxKeys, slot => bounds.forget(slot))
      const bounds: RuleBounds = new RuleBounds(rule, figures, uncertainty)
      return bounds
    })
    this.#hasTooLarge = this.#bounds.some(bounds => bounds.rule.cost !== undefined || bounds.isTooLarge(1))
    this.#hot = rules.map(() => [])
    this.#callers = rules.map(() => [])
    this.rules = this.#bounds.map(({ figures }) => figures)
  }

  add(call: Call, { at, status, durationUs }: LoggedCall): void {
    if (at > this.#tick.x) this.#advance(at)
    const tick = this.#tick
    this.total.calls++
    tick.calls++
    const found = this.#found
    const size = this.#replay.select(call, found)
    if (size < 0) this.#deny()
    else if (size > 0) this.#addRules(tick, call, size, status, durationUs)
  }

  finish(): void {
    this.#advance(Number.POSITIVE_INFINITY)
    const { total } = this
    const enforced = this.#bounds.filter(({ rule }) => rule.enforced)
    let [least, most, ofOne] = [0, 0, 0]
    for (const { figures, leastOfAll } of enforced) {
      figures.callers.finish()
      const refused = refusedBy(figures)
      least += refused.least - figures.denied
      most += refused.most - figures.denied
      ofOne = Math.max(ofOne, leastOfAll)
    }
    for (const { figures, rule } of this.#bounds) if (!rule.enforced) figures.callers.finish()
    const most2 = Math.min(most, this.#hotCalls + this.#sure, total.calls - total.denied)
    total.least = total.denied + Math.min(most2, Math.max(this.#leastOf(least), ofOne))
    total.most = total.denied + most2
  }

  /** Calls that are too large for several rules were counted by each of them. */
  #leastOf(byRules: number): number {
    return Math.max(this.#sure, byRules - this.#sureTwice)
  }

  #sureTwice = 0

  #addRules(tick: Tick, call: Call, size: number, status: number | undefined, durationUs: number): void {
    const found = this.#found
    const begin = tick.length
    if (begin + 3 * size + 1 > tick.words.length) grow(tick)
    const hasRoom = begin + 3 * size + 1 <= tick.words.length
    if (!hasRoom) tick.unknown++
    // a call that some rule never admits is charged by none
    let tooLarge = 0
    for (let i = 0; i < size && this.#hasTooLarge; i++) {
      const rule = found[i]!
      const cost = rule.cost === undefined ? 1 : rule.cost(call)
      if (rule.enforced && this.#bounds[this.#indexOf.get(rule)!]!.isTooLarge(cost)) tooLarge++
    }
    for (let i = 0; i < size; i++) {
      const rule = found[i]!
      const index = this.#indexOf.get(rule)
      if (index === undefined) continue
      const bounds = this.#bounds[index]!
      const { figures } = bounds
      figures.calls++
      const slot = figures.callers.slotOf(rule.key(call)) ?? NO_SLOT
      const cost = rule.cost === undefined ? 1 : rule.cost(call)
      const counts = tooLarge > 0 ? 'no' : countsOf(rule, status)
      if (slot === NO_SLOT) figures.untracked++
      else if (bounds.isTooLarge(cost)) {
        figures.callers.came(slot, tick.x, 1)
        bounds.refuseSurely(slot, tick.x, false)
      } else bounds.add(slot, tick.x, cost, counts, durationUs)
      if (!hasRoom) continue
      tick.words[tick.length++] = index
      tick.words[tick.length++] = bounds.isTooLarge(cost) ? NO_SLOT : slot
      tick.words[tick.length++] = counts === 'yes' ? bounds.unitsOf(cost) : 0
    }
    if (hasRoom) tick.words[tick.length++] = END
    if (tooLarge === 0) return
    this.#sure++
    this.#sureTwice += tooLarge - 1
    // it is charged by no rule
    if (hasRoom) tick.length = begin
  }

  #deny(): void {
    this.total.denied++
    const rule = this.#replay.deniedBy
    const index = rule && this.#indexOf.get(rule)
    if (index === undefined) return
    const { figures } = this.#bounds[index]!
    figures.calls++
    figures.denied++
  }

  /** Advances the bounds: no call that comes from now on came before `next`. */
  #advance(next: number): void {
    const tick = this.#tick
    if (tick.calls > 0) {
      tick.closed = this.#bounds.map(bounds => bounds.close(tick.x))
      this.#open.push(tick)
    }
    while (this.#open.length > 0 && this.#open[0]!.x + this.#uncertainty.aheadUs < next)
      this.#settle(this.#open.shift()!)
    this.#tick = this.#open.length === 0 && tick.calls > 0 ? reuse(tick, next) : newTick(next)
  }

  #settle(tick: Tick): void {
    const { x, closed } = tick
    const hotBefore = this.#hotCalls
    let isHot = false
    for (let index = 0; index < closed.length; index++) {
      const hot = this.#hot[index]!
      const bounds = this.#bounds[index]!
      for (const { slot } of closed[index]!) {
        const mayRefuse = bounds.mayRefuse(slot, x)
        hot[slot] = mayRefuse
        if (mayRefuse) isHot = true
      }
    }
    if (isHot || tick.unknown > 0) this.#sortOut(tick)
    for (let index = 0; index < closed.length; index++) {
      const bounds = this.#bounds[index]!
      let calls = 0
      for (const caller of closed[index]!) {
        if (!isHot && tick.unknown === 0) caller.alone = caller.counted
        bounds.settle(caller, x, this.#hot[index]![caller.slot]!)
        calls += caller.calls
      }
      if (calls > 0) bounds.figures.timeline.add(x, calls, 0, 0)
      bounds.figures.callers.sweep(x - bounds.memoryUs)
    }
    this.total.timeline.add(x, tick.calls, 0, this.#hotCalls - hotBefore)
  }

  /** Finds the calls that only one rule can have refused, and those that some rule has blocked for sure. */
  #sortOut({ x, words, length, closed, unknown }: Tick): void {
    const callers = this.#callers
    for (let index = 0; index < closed.length; index++) {
      for (const caller of closed[index]!) callers[index]![caller.slot] = caller
    }
    this.#hotCalls += unknown
    for (let at = 0; at < length; at++) {
      const begin = at
      let hot = 0
      let lastHot = -1
      let blocked = 0
      for (; words[at]! !== END; at += 3) {
        const index = words[at]!
        const slot = words[at + 1]!
        const bounds = this.#bounds[index]!
        if (!bounds.rule.enforced) continue
        if (slot === NO_SLOT || this.#hot[index]![slot]) {
          hot++
          lastHot = index
          if (slot !== NO_SLOT && bounds.isBlocked(slot, x)) {
            blocked++
            bounds.refuseSurely(slot, x, true)
          }
        }
      }
      if (hot > 0) this.#hotCalls++
      if (blocked > 0) {
        this.#sureTwice += blocked - 1
        continue
      }
      if (hot > 1) continue
      for (let word = begin; words[word]! !== END; word += 3) {
        const index = words[word]!
        const slot = words[word + 1]!
        if (slot === NO_SLOT || (hot === 1 && index !== lastHot)) continue
        callers[index]![slot]!.alone += words[word + 2]!
      }
    }
  }
}

function countsOf({ countWhen }: CompiledRule, status: number | undefined): Counts {
  if (countWhen === undefined) return 'yes'
  return status === undefined ? 'unknown' : countWhen({ status }) ? 'yes' : 'no'
}

function newTick(x: number): Tick {
  return { x, calls: 0, words: new Int32Array(1 << 10), length: 0, unknown: 0, closed: [] }
}

function reuse({ words }: Tick, x: number): Tick {
  return { x, calls: 0, words, length: 0, unknown: 0, closed: [] }
}

function grow(tick: Tick): void {
  if (tick.words.length >= MOST_WORDS) return
  const more = new Int32Array(tick.words.length * 2)
  more.set(tick.words)
  tick.words = more
}

/**
 * Returns how exactly the moments of calls are known if a log has ticks. Calls that wait for a concurrency slot are charged by the
 * other rules when they get one.
 */
export function uncertaintyOf(rules: readonly CompiledRule[], tickUs: number, isStartOfTick: boolean): Uncertainty {
  const waits = rules.map(rule =>
    rule.queueSize > 0 && rule.meters.some(meter => meter.held !== undefined) ? rule.queueTimeoutMs : 0,
  )
  const waitUs = Math.ceil((Math.max(0, ...waits) * 1000) / tickUs) * tickUs
  const widthUs = (isStartOfTick ? tickUs : 2 * tickUs) + waitUs
  return { tickUs, widthUs, aheadUs: widthUs - tickUs }
}
