import type { Meter } from '../algorithms/algorithm.ts'
import { type Receipt, refundCharge } from '../decision/receipt.ts'
import { isLocal, type Lane, latest, type ScheduledCall } from './scheduled-call.ts'

interface Member {
  readonly waiter: ScheduledCall
  ahead: Member | undefined
  behind: Member | undefined
}

/** The charges of a call that passes at one position of a lane. */
export type Turn = readonly Receipt[]

/**
 * Calls that wait and are all alike: in this process for one count of one rule, each with one charge of the same cost for a later moment;
 * or each with the same charges, some of them in a shared store. Charges then belong to a position in the lane and not to a call:
 *
 *   calls    a   b   c   d            b is aborted:  a   c   d
 *   turns   100 200 300 400                       100 200 300       the last turn is refunded
 *
 * The first call passes at the first turn, and a call of a higher priority takes its position before those of a lower one. If a call is aborted, the calls behind it move up: the last turn of the lane is
 * refunded, which takes the same time however many calls wait. A part of a schedule that kept the limit keeps it, too.
 */
export class WaitingLane implements Lane {
  /** The first turn; infinite if no call waits. */
  wakeAt: number = Number.POSITIVE_INFINITY
  readonly #cost: number
  readonly #isLocal: boolean
  readonly #meters: readonly Meter[]
  readonly #patienceUs: number
  readonly #members = new Map<ScheduledCall, Member>()
  #first: Member | undefined
  #last: Member | undefined
  /** From the next one on, one for each call, in the order of their moments. */
  #turns: Turn[] = []
  #next = 0

  constructor(turn: Turn) {
    const [{ state, cost }] = turn as [Receipt]
    this.#cost = cost
    this.#isLocal = turn.every(isLocal)
    this.#meters = state.table.meters
    this.#patienceUs = patienceUsOf(turn)
  }

  get isEmpty(): boolean {
    return this.#first === undefined
  }

  /** True if a call with such a charge in this process is like those that wait here. */
  takes({ state, cost }: Receipt): boolean {
    return cost === this.#cost && state.table.meters === this.#meters
  }

  add(waiter: ScheduledCall, turn: Turn): void {
    this.#addTurn(turn)
    const ahead = this.#overtake(waiter)
    const behind = ahead ? ahead.behind : this.#first
    const member: Member = { waiter, ahead, behind }
    if (ahead) ahead.behind = member
    else this.#first = member
    if (behind) behind.ahead = member
    else this.#last = member
    this.#members.set(waiter, member)
    waiter.lane = this
    this.#setWakeAt()
  }

  /** Answers of a shared store take more or less time, so a turn may be a little earlier than that of the call before. */
  #addTurn(turn: Turn): void {
    let at = this.#turns.length
    while (at > this.#next && latest(this.#turns[at - 1]!) > latest(turn)) at--
    if (at === this.#turns.length) this.#turns.push(turn)
    else this.#turns.splice(at, 0, turn)
  }

  /**
   * Returns the call behind which a new one waits: the last one that is not of a lower rank, or that would wait too long if it were
   * overtaken. Each call that is overtaken passes one turn later.
   */
  #overtake(waiter: ScheduledCall): Member | undefined {
    let ahead = this.#last
    for (let index = this.#turns.length - 1; ahead && ahead.waiter.rank < waiter.rank; index--) {
      if (latest(this.#turns[index]!) > ahead.waiter.since + this.#patienceUs) break
      const { turn } = ahead.waiter
      ahead.waiter.turn = waiter.turn
      waiter.turn = turn
      ahead = ahead.ahead
    }
    return ahead
  }

  /** True if aborted calls can leave by a refund of the last turns. What another process counts cannot be counted again in any other way. */
  canShift(gone: readonly ScheduledCall[]): boolean {
    if (!this.#isLocal) return true
    if (this.#turns.at(-1)![0]!.state.table.meters !== this.#meters) return false
    // a call of a larger cost may wait for its own cost from the moment it came: the next call cannot take over such a turn
    return this.#cost === 1 || !gone.includes(this.#first!.waiter)
  }

  /** Removes aborted calls with all that they were charged; the calls behind them move up. */
  shift(gone: readonly ScheduledCall[], now: number): void {
    for (const waiter of gone) {
      this.#remove(this.#members.get(waiter)!)
      this.#hand(waiter, this.#turns.pop()!)
      for (const receipt of waiter.receipts.toReversed()) refundCharge(receipt, now, 'all')
    }
    this.#setWakeAt()
  }

  /** Gives each call the turn of its position, for calls that are no longer alike: from then on each has its own. */
  dissolve(): ScheduledCall[] {
    return this.#passUntil(Number.POSITIVE_INFINITY)
  }

  /** Takes out the calls whose turns are due. */
  passDue(now: number): ScheduledCall[] {
    return this.#passUntil(now)
  }

  /** Takes one call out with the first turn. */
  takeOut(waiter: ScheduledCall): void {
    this.#remove(this.#members.get(waiter)!)
    this.#hand(waiter, this.#turns[this.#next++]!)
    this.#setWakeAt()
  }

  #passUntil(now: number): ScheduledCall[] {
    const passing: ScheduledCall[] = []
    while (this.#first && latest(this.#turns[this.#next]!) <= now) {
      const { waiter } = this.#first
      this.#remove(this.#first)
      this.#hand(waiter, this.#turns[this.#next++]!)
      passing.push(waiter)
    }
    if (this.#next * 2 > this.#turns.length) {
      this.#turns = this.#turns.slice(this.#next)
      this.#next = 0
    }
    this.#setWakeAt()
    return passing
  }

  #setWakeAt(): void {
    this.wakeAt = this.#first ? latest(this.#turns[this.#next]!) : Number.POSITIVE_INFINITY
  }

  #remove({ ahead, behind, waiter }: Member): void {
    if (ahead) ahead.behind = behind
    else this.#first = behind
    if (behind) behind.ahead = ahead
    else this.#last = ahead
    this.#members.delete(waiter)
    waiter.lane = undefined
  }

  #hand(waiter: ScheduledCall, turn: Turn): void {
    const [only] = turn
    waiter.receipts = this.#isLocal
      ? waiter.receipts.map(receipt => (receipt.state.table === only!.state.table ? only! : receipt))
      : turn
  }
}

/** Returns the longest that rules let a call wait. */
export function patienceUsOf(receipts: readonly Receipt[]): number {
  return Math.max(...receipts.flatMap(({ state }) => state.rule.meters.map(({ maxWaitUs }) => maxWaitUs)))
}
