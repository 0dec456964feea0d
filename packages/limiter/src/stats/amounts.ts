/** The amounts that a rule has reserved since it came into force, and what became of them, in units of its limit. */
export interface Amounts {
  readonly reserved: number
  /** The amount that was really used, of reservations that were settled. */
  readonly settled: number
  /** The amount that was reserved and not used, and is free again. */
  readonly released: number
  /** The amount that was not settled in time. */
  readonly expired: number
  /** The amount that was used beyond what was reserved. */
  readonly overrun: number
}

export const amountNames: readonly (keyof Amounts)[] = ['reserved', 'settled', 'released', 'expired', 'overrun']

/** Amounts that only grow. */
export class AmountTally implements Amounts {
  reserved = 0
  settled = 0
  released = 0
  expired = 0
  overrun = 0

  /** Counts a reservation that was settled at `actual`. */
  settle(reserved: number, actual: number): void {
    this.settled += actual
    if (actual < reserved) this.released += reserved - actual
    else this.overrun += actual - reserved
  }

  read(): Amounts {
    const { reserved, settled, released, expired, overrun } = this
    return { reserved, settled, released, expired, overrun }
  }
}

/** Returns the amounts of several processes; undefined if none has any. */
export function addAmounts(one: Amounts | undefined, other: Amounts | undefined): Amounts | undefined {
  if (!one || !other) return one ?? other
  return Object.fromEntries(amountNames.map(name => [name, one[name] + other[name]])) as unknown as Amounts
}
