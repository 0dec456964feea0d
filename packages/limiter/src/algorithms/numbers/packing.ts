const BITS = 53
/** With so many, a rounded lead costs a caller no more than a thousandth of the limit; what is left over they get too. */
const FEWEST_LEAD_BITS = 10

/** How the bits of a double are shared out; all are powers of two. */
export interface PackingNumbers {
  /** The resolution of moments in microseconds, and how many of them are distinguished. */
  readonly tickUs: number
  readonly ticks: number
  /** One more than the calls that fit. */
  readonly room: number
  /** The resolution of leads in microseconds; a lead of the largest number of steps is unknown. */
  readonly stepUs: number
  readonly leads: number
}

/**
 * Three numbers of a segment in one double, whose 53 whole bits are shared out as a limit needs them:
 *
 *   | last call, in ticks: the low bits | calls | lead, in steps |
 *
 * The high bits of the moment are those of the newest segment's, which came within `spanUs`. Moments and leads are
 * rounded up, so that a segment leaves a little late and never early. A tick is a microsecond up to 100 000 calls a
 * minute or 50 a day, and so is a step up to 8000 a second; beyond, they are as large as they must be.
 */
export class Packing {
  readonly numbers: PackingNumbers
  readonly mostCalls: number
  readonly spanUs: number
  readonly #tickUs: number
  readonly #ticks: number
  readonly #room: number
  readonly #stepUs: number
  readonly #leads: number
  readonly #unit: number

  constructor(numbers: PackingNumbers) {
    const { tickUs, ticks, room, stepUs, leads } = numbers
    this.numbers = numbers
    this.mostCalls = room - 1
    this.spanUs = (ticks - 1) * tickUs
    this.#tickUs = tickUs
    this.#ticks = ticks
    this.#room = room
    this.#stepUs = stepUs
    this.#leads = leads
    this.#unit = room * leads
  }

  pack(last: number, calls: number, leadUs: number): number {
    const steps = Math.min(this.#leads - 1, Math.ceil(leadUs / this.#stepUs))
    return this.#low(Math.ceil(last / this.#tickUs)) * this.#unit + calls * this.#leads + steps
  }

  lastOf(packed: number, newest: number): number {
    const tick = Math.ceil(newest / this.#tickUs)
    const last = (tick - this.#low(tick - Math.floor(packed / this.#unit))) * this.#tickUs
    return Math.min(last, newest)
  }

  callsOf(packed: number): number {
    return Math.floor(packed / this.#leads) - Math.floor(packed / this.#unit) * this.#room
  }

  /** A lead that does not fit is without end: such a segment leaves whole. */
  leadOf(packed: number): number {
    const steps = packed - Math.floor(packed / this.#leads) * this.#leads
    return steps === this.#leads - 1 ? Number.POSITIVE_INFINITY : steps * this.#stepUs
  }

  /** The same segment after it has lost some of its calls. */
  without(packed: number, calls: number): number {
    return packed - calls * this.#leads
  }

  #low(ticks: number): number {
    return ticks - Math.floor(ticks / this.#ticks) * this.#ticks
  }
}

/** Shares the bits out for segments of up to `mostCalls`, none older than `spanUs`, with leads of up to `leadUs`. */
export function shareOut(mostCalls: number, spanUs: number, leadUs: number): PackingNumbers {
  const room = powerAbove(mostCalls)
  let tickUs = 1
  while (room * powerAbove(spanUs / tickUs + 2) * 2 ** FEWEST_LEAD_BITS > 2 ** BITS) tickUs *= 2
  const ticks = powerAbove(spanUs / tickUs + 2)
  const leads = 2 ** BITS / room / ticks
  let stepUs = 1
  while (leadUs / stepUs > leads - 2) stepUs *= 2
  return { tickUs, ticks, room, stepUs, leads }
}

function powerAbove(amount: number): number {
  let power = 1
  while (power <= amount) power *= 2
  return power
}
