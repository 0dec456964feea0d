/** One count to change: which key, by how much; and the store's answer for each level of its limit. */
export interface Charge {
  key: string
  cost: number
  /** A charge that is not enforced is counted and reported, and refuses nothing. */
  enforced: boolean
  /** False when the rule refuses at once, or as many calls wait as may. */
  mayWait: boolean

  /** For how long the charge waits to be settled, if it is a reservation; else 0. */
  holdUs: number
  /** The id of the reservation, or 0. */
  reservation: number

  /** Microseconds until each level lets the call pass; empty if the store was not asked. */
  readonly delays: number[]
  /** The longest of them: when the call passes its slowest level, every level counts it. */
  wait: number
  /** Whether the call may pass at all, then or now. */
  fits: boolean
  /** What may still be taken at once, and the microseconds until all of it may. */
  readonly remaining: number[]
  readonly resets: number[]
}

export function blankCharge(): Charge {
  return {
    key: '',
    cost: 0,
    enforced: true,
    mayWait: true,
    holdUs: 0,
    reservation: 0,
    delays: [],
    wait: 0,
    fits: true,
    remaining: [],
    resets: [],
  }
}

/** Room for one number per level and no more; a list that grows by itself takes room for many. */
export function perLevel(levels: number): number[] {
  return levels === 1 ? [0] : new Array(levels).fill(0)
}
