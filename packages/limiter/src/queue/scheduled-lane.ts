import type { Meter } from '../algorithms/algorithm.ts'
import { attempt } from '../common/background.ts'
import { type Receipt, refundCharge } from '../decision/receipt.ts'
import { passLater } from './long-timer.ts'
import { passWaiter, type ScheduledCall } from './scheduled-call.ts'
import { nodeTimers, type Timers } from './timers.ts'

interface Member {
  readonly waiter: ScheduledCall
  ahead: Member | undefined
  behind: Member | undefined
}

/**
 * Calls that wait for one count of one rule and are all alike: each has one charge for a later moment, of the same cost. A
 * charge then belongs to a position in the lane and not to a call:
 *
 *   calls    a   b   c   d            b is aborted:  a   c   d
 *   turns   100 200 300 400                       100 200 300       the last turn is refunded
 *
 * The first call passes at the first turn, and a call of a higher priority takes its position before those of a lower one. If a call is aborted, the calls behind it move up: the last turn of the lane is
 * refunded, which takes the same time however many calls wait. A part of a schedule that kept the limit keeps it, too.
 */
export class WaitingLane {
  readonly #now: () => number
  readonly #timers: Timers
  readonly #cost: number
  readonly #meters: readonly Meter[]
  readonly #patienceUs: number
  readonly #members = new Map<ScheduledCall, Member>()
  #first: Member | undefined
  #last: Member | undefined
  /** One for each call, and for each aborted call that has not left yet. */
  #turns: Receipt[] = []
  /** The first turn that is not due yet. */
  #next = 0
  #timer: NodeJS.Timeout | undefined

  constructor({ state, cost }: Receipt, now: () => number, timers: Timers = nodeTimers) {
    this.#now = now
    this.#timers = timers
    this.#cost = cost
    this.#meters = state.table.meters
    this.#patienceUs = Math.max(...this.#meters.map(({ maxWaitUs }) => maxWaitUs))
  }

  get isEmpty(): boolean {
    return this.#next === this.#turns.length
  }

  /** Whether a call with such a charge is like those that wait here. */
  takes({ state, cost }: Receipt): boolean {
    return cost === this.#cost && state.table.meters === this.#meters
  }

  add(waiter: ScheduledCall, turn: Receipt, now: number): void {
    this.#turns.push(turn)
    const ahead = this.#overtake(waiter)
    const behind = ahead ? ahead.behind : this.#first
    const member: Member = { waiter, ahead, behind }
    if (ahead) ahead.behind = member
    else this.#first = member
    if (behind) behind.ahead = member
    else this.#last = member
    this.#members.set(waiter, member)
    if (!this.#timer) this.#arm(now)
  }

  /**
   * The call behind which a new one waits: the last one that is not of a lower rank, or that would wait too long if it were
   * overtaken. Each call that is overtaken passes one turn later.
   */
  #overtake(waiter: ScheduledCall): Member | undefined {
    let ahead = this.#last
    for (let index = this.#turns.length - 1; ahead && ahead.waiter.rank < waiter.rank; index--) {
      if (this.#turns[index]!.passAt > ahead.waiter.since + this.#patienceUs) break
      const { turn } = ahead.waiter
      ahead.waiter.turn = waiter.turn
      waiter.turn = turn
      ahead = ahead.ahead
    }
    return ahead
  }

  /** Whether aborted calls can leave by a refund of the last turns. */
  canShift(gone: readonly ScheduledCall[]): boolean {
    if (!this.#turns.at(-1) || this.#turns.at(-1)!.state.table.meters !== this.#meters) return false
    // a call of a larger cost may wait for its own cost from the moment it came: the next call cannot take over such a turn
    return this.#cost === 1 || (this.#first !== undefined && !gone.includes(this.#first.waiter))
  }

  /** Removes aborted calls; the calls behind them move up. */
  shift(gone: readonly ScheduledCall[], now: number): void {
    for (const waiter of gone) {
      const member = this.#members.get(waiter)
      if (member) this.#remove(member)
      refundCharge(this.#turns.pop()!, now, 'all')
    }
    if (this.isEmpty) this.#disarm()
  }

  /** Gives each call the turn of its position, for calls that are no longer alike: from then on each has its own. */
  dissolve(): ScheduledCall[] {
    this.#disarm()
    const waiters: ScheduledCall[] = []
    for (let member = this.#first; member; member = member.behind) {
      hand(member.waiter, this.#turns[this.#next++]!)
      waiters.push(member.waiter)
    }
    this.#next = this.#turns.length
    return waiters
  }

  #disarm(): void {
    this.#timers.clear(this.#timer)
    this.#timer = undefined
  }

  #arm(now: number): void {
    const moment = this.#turns[this.#next]!.passAt
    const leftMs = Math.max(1, Math.ceil((moment - now) / 1000))
    const set = (timer: NodeJS.Timeout): void => {
      this.#timer = timer
    }
    passLater(() => this.#pass(moment), { leftMs, moment, now: this.#now, timers: this.#timers, set })
  }

  /** The turns up to a moment are due. */
  #pass(moment: number): void {
    const now = Math.max(moment, this.#now())
    this.#timer = undefined
    const passing: ScheduledCall[] = []
    while (this.#next < this.#turns.length && this.#turns[this.#next]!.passAt <= now) {
      // aborted calls leave their turn to the next call
      while (this.#first?.waiter.isGone) this.#remove(this.#first)
      if (!this.#first) break
      const { waiter } = this.#first
      this.#remove(this.#first)
      hand(waiter, this.#turns[this.#next++]!)
      passing.push(waiter)
    }
    if (this.#next * 2 > this.#turns.length) this.#forgetPassed()
    if (this.#first) this.#arm(now)
    for (const waiter of passing) attempt('calls that wait', () => passWaiter(waiter))
  }

  #remove({ ahead, behind, waiter }: Member): void {
    if (ahead) ahead.behind = behind
    else this.#first = behind
    if (behind) behind.ahead = ahead
    else this.#last = ahead
    this.#members.delete(waiter)
  }

  #forgetPassed(): void {
    this.#turns = this.#turns.slice(this.#next)
    this.#next = 0
  }
}

function hand(waiter: ScheduledCall, turn: Receipt): void {
  waiter.receipts = waiter.receipts.map(receipt => (receipt.state === turn.state ? turn : receipt))
}
