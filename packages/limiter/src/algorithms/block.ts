import type { Algorithm, Block, Meter, MeterMigration, MeterRedis } from './algorithm.ts'

/*
 * Block: a caller is refused until a moment. It is no limit of its own but is checked before a rule's: a call checks it with
 * cost 0, whether it may pass, and a block is set by a cost, which is how many milliseconds it lasts.
 *
 *   refused |   ________
 *           |  |        |
 *           +--+--------+------ time
 *              set      until
 *
 * A rule sets a block only if none lasts, so refused calls do not make it longer, also if several are refused before the
 * first block has reached the store: its cost is higher by ONCE. A block set by hand replaces a shorter one, and
 * never of a longer one.
 *
 * Blocks can grow: each that the rule sets is longer than the one before by a factor, up to a longest one. How many there were is
 * forgotten when none has lasted for a while.
 *
 *   refused |  _    ___      ________
 *           | | |  |   |    |        |
 *           +-+-+--+---+----+--------+-- time
 */
const UNTIL = 0
const STEPS = 1

/** Longer than any block, and whole when doubled. */
const ONCE = 2 ** 40

/** How blocks grow, in milliseconds. */
export interface BlockGrowth {
  readonly firstMs: number
  readonly factor: number
  readonly maxMs: number
  /** After so long without a block, the next one is a first one. */
  readonly forgetAfterMs: number
}

/** The cost of a block of `ms` milliseconds that is set only if none lasts; blocks that grow last as long as they do. */
export function firstBlockCost(ms: number): number {
  return ms + ONCE
}

/** No rule names it: the star keeps it apart from the names of algorithms. */
export const blocking: Algorithm = {
  name: '*block',
  limit: 'count',
  options: {},
  meter: (_limit, growth) =>
    growth.firstMs === undefined ? blockMeter : growingBlockMeter(growth as unknown as BlockGrowth),
}

class BlockMeter implements Block, MeterMigration {
  readonly slots: number
  readonly maxWaitUs = 0
  readonly redis: MeterRedis
  readonly migrate: MeterMigration = this
  readonly scale: readonly number[] = []
  readonly #growth: BlockGrowth | undefined
  readonly #forgetUs: number

  constructor(growth?: BlockGrowth) {
    this.#growth = growth
    this.#forgetUs = (growth?.forgetAfterMs ?? 0) * 1000
    this.slots = growth ? 2 : 1
    this.redis = { lua: { name: 'block' }, numbers: { setsMoment: 1, ...growth } }
  }

  delay(state: Float64Array, at: number, now: number, cost: number): number {
    return cost > 0 ? 0 : Math.max(0, state[at + UNTIL]! - now)
  }

  take(state: Float64Array, at: number, now: number, cost: number): void {
    const until = state[at + UNTIL]!
    if (cost < ONCE) {
      if (this.#growth) state[at + STEPS] = this.#steps(state, at, now)
      state[at + UNTIL] = Math.max(until, now + cost * 1000)
    } else if (until <= now) {
      const steps = this.#steps(state, at, now)
      state[at + UNTIL] = now + (this.#growth ? lastsMs(this.#growth, steps) : cost - ONCE) * 1000
      if (this.#growth) state[at + STEPS] = steps + 1
    }
  }

  refund(): void {}

  /** What the next block would last, in milliseconds, if blocks grow; 1 if they do not; 0 while one lasts. */
  remaining(state: Float64Array, at: number, now: number): number {
    if (state[at + UNTIL]! > now) return 0
    return this.#growth ? lastsMs(this.#growth, this.#steps(state, at, now)) : 1
  }

  costLasting(us: number): number {
    return Math.ceil(us / 1000)
  }

  idleAt(state: Float64Array, at: number): number {
    return state[at + UNTIL] === 0 ? 0 : state[at + UNTIL]! + this.#forgetUs
  }

  inherit(old: ArrayLike<number>, _oldScale: readonly number[], state: Float64Array, at: number): void {
    state[at + UNTIL] = old[UNTIL]!
    if (this.#growth) state[at + STEPS] = old[STEPS] ?? 0
  }

  /** How many blocks there were that are not forgotten. */
  #steps(state: Float64Array, at: number, now: number): number {
    if (this.#growth === undefined || now >= state[at + UNTIL]! + this.#forgetUs) return 0
    return state[at + STEPS]!
  }
}

/** Blocks that last for as long as the rule says. */
export const blockMeter: Block = new BlockMeter()

/** Blocks that grow. */
export function growingBlockMeter(growth: BlockGrowth): Meter {
  return new BlockMeter(growth)
}

/** How long a block lasts after so many others; multiplied one by one, as in Redis, so that both round alike. */
function lastsMs({ firstMs, factor, maxMs }: BlockGrowth, steps: number): number {
  let ms = firstMs
  for (let step = 0; step < steps && ms < maxMs && factor > 1; step++) ms *= factor
  return Math.min(maxMs, Math.floor(ms))
}
