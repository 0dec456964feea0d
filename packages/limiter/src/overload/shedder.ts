/*
 * Which calls to refuse while the process has too much to do.
 *
 * `share` is the part of the offered calls that is admitted. In each interval in which the load is above what is allowed it falls,
 * faster the higher the load is; otherwise it rises slowly. It never falls to 0. The calls of the last intervals, counted by level,
 * say which levels fit into the share: those above the threshold pass, of the level at the threshold a random part does.
 *
 *   level      critical  default        sheddable
 *   offered    |##       |############  |######
 *   admitted   |##       |######        |            share 0.4
 */
const LEAST_SHARE = 0.05
const LEAST_FALL = 0.05
const LARGEST_FALL = 0.3
const RISE = 1.03
const STEP = 0.005
/** Below this load the share rises, above 1 it falls. */
const CALM = 0.8
const KEPT = 0.7

export class Shedder {
  /** The part of the calls that is admitted. */
  share = 1
  /** The calls of the last intervals by level, from the lowest to the highest; newer ones count more. */
  readonly #offered: Float64Array
  /** The probability to be admitted, by level. */
  readonly #chance: Float64Array

  constructor(levels: number) {
    this.#offered = new Float64Array(levels)
    this.#chance = new Float64Array(levels).fill(1)
  }

  /** Counts a call of the `index`th level, and returns the probability with which it is to be admitted. */
  offer(index: number): number {
    this.#offered[index] = this.#offered[index]! + 1
    return this.#chance[index]!
  }

  /** Ends an interval; `load` is 1 at the threshold. */
  update(load: number): void {
    if (load > 1) this.share *= 1 - Math.min(LARGEST_FALL, LEAST_FALL * load)
    else if (load < CALM) this.share = this.share * RISE + STEP
    this.share = Math.min(1, Math.max(LEAST_SHARE, this.share))
    let total = 0
    for (const count of this.#offered) total += count
    let left = this.share * total
    for (let i = this.#offered.length - 1; i >= 0; i--) {
      const count = this.#offered[i]!
      this.#chance[i] = this.share === 1 || count <= left ? 1 : Math.max(0, left / count)
      left = Math.max(0, left - count)
      this.#offered[i] = count * KEPT
    }
    // with nothing known of a level, the share decides
    if (total === 0) this.#chance.fill(this.share)
  }

  /** Returns the probability with which a call of a level is admitted. */
  chanceAt(index: number): number {
    return this.#chance[index]!
  }

  /** Returns the calls of a level in the last intervals. */
  offeredAt(index: number): number {
    return this.#offered[index]!
  }
}
