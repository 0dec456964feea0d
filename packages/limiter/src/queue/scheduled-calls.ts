import { reportFault } from '../common/faults.ts'
import type { PendingVerdict } from '../decision/pending-verdict.ts'
import type { Receipt } from '../decision/receipt.ts'
import { enterQueue, leaveQueue } from '../decision/rule-state.ts'
import type { CompiledRule } from '../rules/compile.ts'
import { getOrAdd } from '../rules/get-or-add.ts'
import type { Table } from '../stores/memory/table.ts'
import { moveUp } from './move-up.ts'
import { isLocal, type Lane, latest, passWaiter, type ScheduledCall } from './scheduled-call.ts'
import { patienceUsOf, type Turn, WaitingLane } from './scheduled-lane.ts'
import { nodeTimers, passLater, type Timers } from './timers.ts'
import { WakeHeap } from './wake-heap.ts'

/** The calls that wait for one count: in a lane if they are alike, or else one by one. */
type Group = WaitingLane | Set<ScheduledCall>

/** A call that waits for this much longer than it may is overdue. */
const OVERDUE_US = 1_000_000
/** A timer that is set for longer fires at once. */
const LONGEST_CHECK_MS = 2 ** 31 - 1

export interface HoldOptions {
  /** Ends the wait. */
  readonly signal?: AbortSignal | undefined
  /** The priority of the call, from 0 to 1. */
  readonly rank?: number | undefined
  /** Returns the verdict of a call that must leave its place to another caller. */
  refuse?(rule: CompiledRule): PendingVerdict | Promise<PendingVerdict>
}

export interface ScheduledCallsOptions {
  readonly now: () => number
  /** Reports that aborted calls have been refunded. */
  onFreed(receipts: readonly Receipt[]): void
  /** Reports that a call was still waiting long after its last moment. */
  onOverdue?(): void
  /** Those of Node unless given. */
  readonly timers?: Timers | undefined
}

/**
 * Calls that have been admitted for a later moment. Each was counted when it was decided. A call that is aborted is refunded,
 * and the calls behind it move up. Most calls that wait for one count are alike, and wait in a lane, where those of a higher
 * priority overtake the others; the order of all other calls is fixed, and they are refunded and counted again one by one.
 *
 * One timer is set for the first moment of all. Calls pass in `passDue` only, and never while groups are changed.
 */
export class ScheduledCalls {
  /** From this moment on `passDue` has something to do, although a timer may be late. */
  dueAt: number = Number.POSITIVE_INFINITY
  readonly #options: ScheduledCallsOptions
  readonly #timers: Timers
  readonly #groups = new Map<Table, Map<number, Group>>()
  /** The calls that wait for counts of a shared store. */
  readonly #sharedLanes = new Map<string, WaitingLane>()
  readonly #heap = new WakeHeap<ScheduledCall | WaitingLane>()
  #timer: NodeJS.Timeout | undefined
  /** The moment for which the timer is set. */
  #timerAt = Number.POSITIVE_INFINITY
  #gone: ScheduledCall[] = []
  #turns = 0
  /** All calls that wait. */
  readonly #waiting = new Set<ScheduledCall>()
  #checking: NodeJS.Timeout | undefined
  /** The last moment that is checked next. */
  #checkAt = Number.POSITIVE_INFINITY

  constructor(options: ScheduledCallsOptions) {
    this.#options = options
    this.#timers = options.timers ?? nodeTimers
  }

  /**
   * Resolves to the verdict at its moment; rejects with the signal's reason if that comes first. If another caller needs its place, it
   * resolves to what `refuse` says.
   */
  hold(
    pending: PendingVerdict,
    since: number,
    { signal, rank = 0, refuse }: HoldOptions = {},
  ): Promise<PendingVerdict> {
    const now = this.#options.now()
    if (this.dueAt <= now) this.passDue(now)
    const { receipts } = pending
    if (latest(receipts) <= now && !this.isBehind(pending))
      return Promise.resolve(pending.afterWait(receipts, (latest(receipts) - since) / 1000))
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.delete(waiter)
        if (this.#waiting.size === 0) this.#endChecks()
        signal?.removeEventListener('abort', abandon)
        for (const { state, key } of queues) leaveQueue(state, key)
      }
      const abandon = (): void => {
        this.#abandon(waiter)
        leave()
        reject(signal?.reason)
      }
      const giveWay = (rule: CompiledRule): void => {
        this.#abandon(waiter)
        leave()
        resolve(refuse?.(rule) ?? pending.refusedBy(rule, 'queue-full'))
      }
      const settle = (settled: PendingVerdict): void => {
        waiter.isGone = true
        leave()
        this.#forget(waiter)
        resolve(settled)
      }
      const fail = (error: unknown): void => {
        waiter.isGone = true
        leave()
        this.#forget(waiter)
        reject(error)
      }
      const queues = receipts.filter(({ passAt }) => passAt > since)
      const waiter: ScheduledCall = {
        ...{ pending, since, turn: this.#turns++, rank, receipts, settle, fail, giveWay },
        ...{
          lane: undefined,
          wakeAt: Number.POSITIVE_INFINITY,
          isGone: false,
          lastMoment: lastMomentOf(receipts, since),
        },
      }
      this.#waiting.add(waiter)
      signal?.addEventListener('abort', abandon, { once: true })
      this.#enter(waiter, now)
      for (const { state, key } of queues) enterQueue(state, key, waiter)
      if (signal?.aborted) abandon()
      this.#arm(now)
      if (this.#timerAt <= now) this.passDue(now)
      this.#check(waiter.lastMoment, now)
    })
  }

  /**
   * True if calls wait in this process for the same counts of a shared store. The store may let a later call pass at once while its answer
   * to an earlier one is under way, and the earlier one is then the first to pass.
   */
  isBehind({ receipts }: PendingVerdict): boolean {
    if (this.#sharedLanes.size === 0) return false
    const place = placeOf(receipts)
    return place !== undefined && this.#sharedLanes.has(place)
  }

  /** Lets all calls pass whose moment has come. */
  passDue(now: number): void {
    const freed = this.#gone.length > 0 ? this.#release(now) : []
    for (let first = this.#heap.first(); first && first.wakeAt <= now; first = this.#heap.first()) {
      if (first instanceof WaitingLane) {
        const passing = first.passDue(now)
        if (!first.isEmpty) this.#heap.push(first, 0)
        for (const waiter of passing) this.#pass(waiter)
      } else this.#pass(first)
    }
    this.#arm(now)
    if (freed.length > 0) this.#options.onFreed(freed)
  }

  /** Lets a call pass; one that fails leaves the queue with its error, and keeps out no other. */
  #pass(waiter: ScheduledCall): void {
    try {
      passWaiter(waiter)
    } catch (error) {
      waiter.fail(error)
      reportFault('calls that wait', error)
    }
  }

  /** Returns what a timer that is set for a moment needs. */
  #timing(): { now: () => number; timers: Timers } {
    return { now: this.#options.now, timers: this.#timers }
  }

  #enter(waiter: ScheduledCall, now: number): void {
    const place = placeOf(waiter.receipts)
    if (place !== undefined) {
      const lane = getOrAdd(this.#sharedLanes, place, () => new WaitingLane(waiter.receipts))
      this.#join(lane, waiter, waiter.receipts)
      return
    }
    const open = waiter.receipts.filter(({ passAt }) => passAt > now)
    const [only] = open
    const group = this.#groupAt(only!)
    if (open.length === 1 && (group === undefined || (group instanceof WaitingLane && group.takes(only!)))) {
      const lane = group ?? new WaitingLane(open)
      if (!group) this.#setGroup(only!, lane)
      this.#join(lane, waiter, open)
      return
    }
    for (const receipt of open) this.#setOf(receipt).add(waiter)
    this.#schedule(waiter)
  }

  #join(lane: WaitingLane, waiter: ScheduledCall, turn: Turn): void {
    const before = lane.wakeAt
    lane.add(waiter, turn)
    if (lane.wakeAt !== before) this.#heap.push(lane, 0)
  }

  /** Lets a call that is in no lane pass at its moment. */
  #schedule(waiter: ScheduledCall): void {
    const moment = latest(waiter.receipts)
    if (waiter.wakeAt === moment) return
    waiter.wakeAt = moment
    this.#heap.push(waiter, waiter.turn)
  }

  #arm(now: number): void {
    const first = this.#heap.first()?.wakeAt ?? Number.POSITIVE_INFINITY
    this.dueAt = this.#gone.length > 0 ? 0 : first
    if (first === this.#timerAt) return
    this.#timers.clear(this.#timer)
    this.#timer = undefined
    this.#timerAt = first
    if (first === Number.POSITIVE_INFINITY) return
    const pass = (): void => {
      this.#timerAt = Number.POSITIVE_INFINITY
      this.passDue(Math.max(first, this.#options.now()))
    }
    const set = (timer: NodeJS.Timeout): void => {
      this.#timer = timer
    }
    const leftMs = Math.max(1, Math.ceil((first - now) / 1000))
    passLater(pass, { leftMs, moment: first, ...this.#timing(), set })
  }

  /** Checks at the last moment of the calls that wait that none of them still does. */
  #check(lastMoment: number, now: number): void {
    if (lastMoment >= this.#checkAt) return
    this.#endChecks()
    if (lastMoment === Number.POSITIVE_INFINITY) return
    this.#checkAt = lastMoment
    const check = (): void => {
      this.#checkAt = Number.POSITIVE_INFINITY
      this.#passOverdue(this.#options.now() - OVERDUE_US)
      let next = Number.POSITIVE_INFINITY
      for (const waiter of this.#waiting) next = Math.min(next, waiter.lastMoment)
      this.#check(next, this.#options.now())
    }
    const leftMs = Math.max(1, Math.ceil((lastMoment + OVERDUE_US - now) / 1000))
    this.#checking = this.#timers.set(check, Math.min(leftMs, LONGEST_CHECK_MS))
  }

  #endChecks(): void {
    this.#timers.clear(this.#checking)
    this.#checking = undefined
    this.#checkAt = Number.POSITIVE_INFINITY
  }

  /** Passes calls whose moment has long come, as a last resort: a timer was lost, or the queue has a fault. */
  #passOverdue(moment: number): void {
    const overdue = [...this.#waiting].filter(({ lastMoment }) => lastMoment <= moment)
    if (overdue.length === 0) return
    this.#options.onOverdue?.()
    this.#timerAt = Number.POSITIVE_INFINITY
    this.passDue(this.#options.now())
    for (const waiter of overdue) {
      if (waiter.isGone) continue
      waiter.lane?.takeOut(waiter)
      this.#pass(waiter)
    }
  }

  /** Calls that are aborted in one turn of the event loop are handled together. */
  #abandon(waiter: ScheduledCall): void {
    if (this.#gone.length === 0) this.#timers.soon(() => this.passDue(this.#options.now()))
    waiter.isGone = true
    waiter.wakeAt = Number.POSITIVE_INFINITY
    this.#gone.push(waiter)
    this.dueAt = 0
  }

  /** Refunds the aborted calls, and lets the others move up; returns what was refunded. */
  #release(now: number): Receipt[] {
    const gone = this.#gone.sort((a, b) => b.turn - a.turn)
    this.#gone = []
    const freed = gone.toReversed().flatMap(({ receipts }) => receipts)
    const others: ScheduledCall[] = []
    const byLane = new Map<Lane, ScheduledCall[]>()
    for (const waiter of gone) {
      if (waiter.lane) getOrAdd(byLane, waiter.lane, () => []).push(waiter)
      else others.push(waiter)
    }
    for (const [lane, leaving] of byLane) {
      if (!lane.canShift(leaving)) {
        others.push(...leaving)
        continue
      }
      lane.shift(leaving, now)
      this.#forget(leaving[0]!)
    }
    if (others.length > 0) this.#moveUp(others, now)
    return freed
  }

  /** Counts again all calls that wait for a count of the aborted ones, and for every other count of those. */
  #moveUp(gone: readonly ScheduledCall[], now: number): void {
    const affected = new Set(gone)
    for (const waiter of affected) {
      for (const receipt of waiter.receipts) {
        if (!this.#groupAt(receipt)) continue
        for (const other of this.#setOf(receipt)) affected.add(other)
      }
    }
    for (const waiter of moveUp([...affected], now)) this.#schedule(waiter)
    for (const waiter of gone) this.#forget(waiter)
  }

  /** Removes a call from all groups that it was in one by one, and groups that no call waits in any more. */
  #forget(waiter: ScheduledCall): void {
    waiter.wakeAt = Number.POSITIVE_INFINITY
    const place = placeOf(waiter.receipts)
    if (place !== undefined) {
      if (this.#sharedLanes.get(place)?.isEmpty) this.#sharedLanes.delete(place)
      return
    }
    for (const receipt of waiter.receipts) {
      const group = this.#groupAt(receipt)
      if (group instanceof Set) group.delete(waiter)
      if (group instanceof Set ? group.size === 0 : group?.isEmpty) this.#dropGroup(receipt)
    }
  }

  #groupAt(receipt: Receipt): Group | undefined {
    return this.#groups.get(receipt.state.table)?.get(receipt.slot)
  }

  /** Returns the calls that wait for a count and are in no lane. */
  #setOf(receipt: Receipt): Set<ScheduledCall> {
    const group = this.#groupAt(receipt)
    if (group instanceof Set) return group
    const waiters = new Set<ScheduledCall>()
    this.#setGroup(receipt, waiters)
    for (const waiter of group?.dissolve() ?? []) {
      waiters.add(waiter)
      if (!waiter.isGone) this.#schedule(waiter)
    }
    return waiters
  }

  #setGroup(receipt: Receipt, group: Group): void {
    getOrAdd(this.#groups, receipt.state.table, () => new Map<number, Group>()).set(receipt.slot, group)
  }

  #dropGroup(receipt: Receipt): void {
    const { table } = receipt.state
    const groups = this.#groups.get(table)
    groups?.delete(receipt.slot)
    if (groups?.size === 0) this.#groups.delete(table)
  }
}

/**
 * Returns what calls that wait for counts of a shared store have in common: rules, keys and costs. Undefined if all is counted in
 * this process.
 */
function placeOf(receipts: readonly Receipt[]): string | undefined {
  if (receipts.every(isLocal)) return undefined
  return receipts.map(({ state, cost, key }) => `${state.rule.id} ${cost} ${key}`).join('\n')
}

/** Returns the last moment at which a call may pass: that of its charges, or what its rules allow if others overtake it. */
function lastMomentOf(receipts: readonly Receipt[], since: number): number {
  return Math.max(latest(receipts), since + patienceUsOf(receipts))
}
