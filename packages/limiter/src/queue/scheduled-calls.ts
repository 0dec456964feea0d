import type { PendingVerdict } from '../decision/pending-verdict.ts'
import { type Receipt, refundCharge } from '../decision/receipt.ts'
import { getOrAdd } from '../rules/get-or-add.ts'
import type { Table } from '../stores/memory/table.ts'
import { passLater } from './long-timer.ts'
import { moveUp } from './move-up.ts'
import { isPending, latest, passWaiter, type ScheduledCall } from './scheduled-call.ts'
import { WaitingLane } from './scheduled-lane.ts'
import { nodeTimers, type Timers } from './timers.ts'

/** The calls that wait for one count: in a lane if they are alike, or else one by one. */
type Group = WaitingLane | Set<ScheduledCall>

/**
 * Calls that have been admitted for a later moment. Each was counted when it was decided. A call that is aborted is refunded,
 * and the calls behind it move up. Most calls that wait for one count are alike, and wait in a lane, where those of a higher
 * priority overtake the others; the order of all other calls is fixed, and they are refunded and counted again one by one.
 */
export class ScheduledCalls {
  readonly #now: () => number
  readonly #onFreed: (receipts: readonly Receipt[]) => void
  readonly #timers: Timers
  readonly #groups = new Map<Table, Map<number, Group>>()
  #gone: ScheduledCall[] = []
  #turns = 0

  constructor(now: () => number, onFreed: (receipts: readonly Receipt[]) => void, timers: Timers = nodeTimers) {
    this.#now = now
    this.#timers = timers
    this.#onFreed = onFreed
  }

  /** Resolves to the verdict at its moment; rejects with the signal's reason if that comes first. */
  hold(pending: PendingVerdict, since: number, signal?: AbortSignal, rank = 0): Promise<PendingVerdict> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#timers.clear(waiter.timer)
        signal?.removeEventListener('abort', abandon)
        for (const state of waiter.queues) state.waiting--
      }
      const abandon = (): void => {
        leave()
        this.#abandon(waiter)
        reject(signal?.reason)
      }
      const settle = (settled: PendingVerdict): void => {
        leave()
        this.#forget(waiter)
        resolve(settled)
      }
      const { receipts } = pending
      const queues = receipts.filter(({ passAt }) => passAt > since).map(({ state }) => state)
      const turn = this.#turns++
      const waiter: ScheduledCall = {
        ...{ pending, since, turn, rank, queues, receipts },
        ...{ timer: undefined, isGone: false, settle },
      }
      for (const state of waiter.queues) state.waiting++
      signal?.addEventListener('abort', abandon, { once: true })
      this.#enter(waiter, this.#now())
      if (signal?.aborted) abandon()
    })
  }

  #enter(waiter: ScheduledCall, now: number): void {
    const pending = waiter.receipts.filter(receipt => isPending(receipt, now))
    const [only] = pending
    const leftMs = Math.ceil((latest(waiter.receipts) - now) / 1000)
    const group = only && this.#groupAt(only)
    const isAlike = only && pending.length === 1 && leftMs > 0 && only.passAt === latest(waiter.receipts)
    if (isAlike && (group === undefined || (group instanceof WaitingLane && group.takes(only)))) {
      const lane = group ?? new WaitingLane(only, this.#now, this.#timers)
      this.#setGroup(only, lane)
      lane.add(waiter, only, now)
      return
    }
    for (const receipt of pending) this.#setOf(receipt).add(waiter)
    this.#arm(waiter, now)
  }

  /** Lets a call that is in no lane pass at its moment. */
  #arm(waiter: ScheduledCall, now: number): void {
    this.#timers.clear(waiter.timer)
    const moment = latest(waiter.receipts)
    const leftMs = Math.ceil((moment - now) / 1000)
    const pass = (): void => passWaiter(waiter)
    const set = (timer: NodeJS.Timeout): void => {
      waiter.timer = timer
    }
    // a call that may pass now must not be overtaken by one that comes before a timer fires
    if (leftMs <= 0) pass()
    else passLater(pass, { leftMs, moment, now: this.#now, timers: this.#timers, set })
  }

  /** Calls that are aborted in one turn of the event loop are handled together. */
  #abandon(waiter: ScheduledCall): void {
    if (this.#gone.length === 0) this.#timers.soon(() => this.#release())
    waiter.isGone = true
    this.#gone.push(waiter)
  }

  #release(): void {
    const now = this.#now()
    const gone = this.#gone.sort((a, b) => b.turn - a.turn)
    this.#gone = []
    const others: ScheduledCall[] = []
    for (const [lane, leaving] of this.#byLane(gone, others)) {
      for (const receipt of leaving.flatMap(({ receipts }) => receipts.toReversed())) {
        if (this.#groupAt(receipt) !== lane) refundCharge(receipt, now, 'all')
      }
      lane.shift(leaving, now)
      if (lane.isEmpty) this.#dropGroup(leaving[0]!.receipts.find(receipt => this.#groupAt(receipt) === lane)!)
    }
    if (others.length > 0) this.#moveUp(others, now)
    this.#onFreed(gone.toReversed().flatMap(({ receipts }) => receipts))
  }

  /** The lanes that the aborted calls can leave; the other calls are added to `others`. */
  #byLane(gone: readonly ScheduledCall[], others: ScheduledCall[]): Map<WaitingLane, ScheduledCall[]> {
    const byLane = new Map<WaitingLane, ScheduledCall[]>()
    for (const waiter of gone) {
      const groups = waiter.receipts.flatMap(receipt => this.#groupAt(receipt) ?? [])
      const [lane] = groups
      if (groups.length !== 1 || !(lane instanceof WaitingLane)) others.push(waiter)
      else getOrAdd(byLane, lane, () => []).push(waiter)
    }
    for (const [lane, leaving] of byLane) {
      if (lane.canShift(leaving)) continue
      byLane.delete(lane)
      others.push(...leaving)
    }
    return byLane
  }

  /** Counts again all calls that wait for a count of the aborted ones, and for every other count of those. */
  #moveUp(gone: readonly ScheduledCall[], now: number): void {
    const affected = new Set(gone)
    for (const waiter of affected) {
      for (const receipt of waiter.receipts) {
        const group = this.#groupAt(receipt)
        if (group) for (const other of this.#setOf(receipt)) affected.add(other)
      }
    }
    for (const waiter of moveUp([...affected], now)) this.#arm(waiter, now)
    for (const waiter of gone) this.#forget(waiter)
  }

  #forget(waiter: ScheduledCall): void {
    for (const receipt of waiter.receipts) {
      const group = this.#groupAt(receipt)
      if (group instanceof Set) group.delete(waiter)
      if (group instanceof Set ? group.size === 0 : group?.isEmpty) this.#dropGroup(receipt)
    }
  }

  #groupAt({ state, slot }: Receipt): Group | undefined {
    return this.#groups.get(state.table)?.get(slot)
  }

  /** The calls that wait for a count and are in no lane. */
  #setOf(receipt: Receipt): Set<ScheduledCall> {
    const group = this.#groupAt(receipt)
    if (group instanceof Set) return group
    const waiters = new Set<ScheduledCall>()
    this.#setGroup(receipt, waiters)
    const now = this.#now()
    for (const waiter of group?.dissolve() ?? []) {
      waiters.add(waiter)
      if (!waiter.isGone) this.#arm(waiter, now)
    }
    return waiters
  }

  #setGroup({ state, slot }: Receipt, group: Group): void {
    const groups = this.#groups.get(state.table) ?? new Map<number, Group>()
    this.#groups.set(state.table, groups.set(slot, group))
  }

  #dropGroup({ state, slot }: Receipt): void {
    const groups = this.#groups.get(state.table)
    groups?.delete(slot)
    if (groups?.size === 0) this.#groups.delete(state.table)
  }
}
