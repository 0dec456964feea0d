import type { Algorithm, Meter } from './algorithm.ts'
import { blockLua } from './lua/generated.ts'

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
 */
const UNTIL = 0

/** Longer than any block, and whole when doubled. */
const ONCE = 2 ** 40

/** The cost of a block of `ms` milliseconds that is set only if none lasts. */
export function firstBlockCost(ms: number): number {
  return ms + ONCE
}

/** No rule names it: the star keeps it apart from the names of algorithms. */
export const blocking: Algorithm = { name: '*block', limit: 'count', options: {}, meter: () => blockMeter }

export const blockMeter: Meter = {
  slots: 1,
  needsRelease: false,
  maxWaitUs: 0,
  lua: blockLua,
  numbers: { setsMoment: 1 },
  delay(state, at, now, cost) {
    return cost > 0 ? 0 : Math.max(0, state[at + UNTIL]! - now)
  },
  take(state, at, now, cost) {
    const until = state[at + UNTIL]!
    if (cost < ONCE) state[at + UNTIL] = Math.max(until, now + cost * 1000)
    else if (until <= now) state[at + UNTIL] = now + (cost - ONCE) * 1000
  },
  refund() {},
  remaining(state, at, now) {
    return state[at + UNTIL]! > now ? 0 : 1
  },
  costLasting(us) {
    return Math.ceil(us / 1000)
  },
  idleAt(state, at) {
    return state[at + UNTIL]!
  },
}
