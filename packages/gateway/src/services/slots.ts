import { attempt, visitAll } from 'diana-limiter/gateway'
import type { ConnectionSettings } from '../settings/routes/route-settings.ts'

type SlotSettings = Pick<ConnectionSettings, 'max' | 'queueSize' | 'queueMs'>

/** A call that needs a connection to a service. */
export interface SlotUser {
  /** Reports that the call may be sent now; it must release its slot when it has ended. */
  onSlot(): void
  /** Reports that no connection has become free, and none is waited for any more. */
  onNoSlot(): void
  /** Returns for how long the service has been waiting for the caller of this call. */
  stalledMs(): number
  /** Ends the call, because others need its slot. */
  evict(): void
}

const evictableMs = 1000
const evictionPauseMs = 100

/**
 * Bounds how many calls one address of a service is sent at a time. Further calls wait in a queue that is bounded in length
 * and time. While calls wait, a slot is taken from a call whose caller sends or reads nearly nothing, so that slow callers
 * cannot keep all slots.
 */
export class Slots {
  readonly #settings: SlotSettings
  readonly #holders = new Set<SlotUser>()
  readonly #queue = new Map<SlotUser, NodeJS.Timeout>()
  #eviction: NodeJS.Timeout | undefined

  constructor(settings: SlotSettings) {
    this.#settings = settings
  }

  get inUse(): number {
    return this.#holders.size
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** True if a call would get a slot at once. */
  get hasRoom(): boolean {
    return this.#holders.size < this.#settings.max
  }

  take(user: SlotUser): void {
    const { max, queueSize, queueMs } = this.#settings
    if (this.#holders.size < max) this.#grant(user)
    else if (this.#queue.size >= queueSize) user.onNoSlot()
    else {
      this.#queue.set(
        user,
        setTimeout(() => {
          this.#queue.delete(user)
          user.onNoSlot()
        }, queueMs),
      )
      this.#evictSoon(0)
    }
  }

  /** Gives a slot back, or leaves the queue for one. */
  release(user: SlotUser): void {
    if (this.#holders.delete(user)) this.#grantNext()
    else this.#leaveQueue(user)
  }

  #grant(user: SlotUser): void {
    this.#holders.add(user)
    user.onSlot()
  }

  #grantNext(): void {
    const [next] = this.#queue.keys()
    if (next === undefined || this.#holders.size >= this.#settings.max) return
    this.#leaveQueue(next)
    // the call that has given the slot back is not to blame
    if (!attempt('slots of services', () => this.#grant(next))) this.release(next)
  }

  #leaveQueue(user: SlotUser): void {
    clearTimeout(this.#queue.get(user))
    this.#queue.delete(user)
  }

  #evictSoon(pauseMs: number): void {
    this.#eviction ??= setTimeout(() => {
      this.#eviction = undefined
      this.#evictStalled()
      if (this.#queue.size > 0) this.#evictSoon(evictionPauseMs)
    }, pauseMs)
  }

  /** As many as there are calls in the queue, and those first for which the service has waited longest. */
  #evictStalled(): void {
    const stalled: { readonly user: SlotUser; readonly ms: number }[] = []
    const measure = (user: SlotUser): void => {
      const ms = user.stalledMs()
      if (ms >= evictableMs) stalled.push({ user, ms })
    }
    visitAll('slots of services', [...this.#holders], measure, user => this.release(user))
    const longest = stalled.sort((a, b) => b.ms - a.ms).slice(0, this.#queue.size)
    visitAll(
      'slots of services',
      longest,
      ({ user }) => user.evict(),
      ({ user }) => this.release(user),
    )
  }
}
