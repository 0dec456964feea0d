import { CountsLost } from '../store-error.ts'
import { SLOTS, slotOf } from './slot.ts'

/**
 * The life of the counts in a Redis, or in one slot of a Cluster: a small key that is created with the first count, and another one
 * after they were lost.
 */
export interface Era {
  readonly key: string
  /** When it was created, by the clock of Redis; 0 if that is not known. */
  createdAt: number
  /** When the one was created whose counts were lost; 0 if none were. */
  lost: number
  /** Until when an answer that this process got matters, by its own clock, in milliseconds. */
  mattersUntil: number
}

/** The eras that a process knows: one, or on a Cluster one for each slot that it has counted in. */
export class Eras {
  readonly #prefix: string
  readonly #slots: SlotNames | undefined
  readonly #eras = new Map<number, Era>()

  constructor(prefix: string, isCluster: boolean) {
    this.#prefix = prefix
    // braces in the prefix choose the slot of all keys
    this.#slots = isCluster && !/\{[^}]+\}/.test(prefix) ? new SlotNames() : undefined
  }

  /** The era that the counts of a ledger belong to. */
  of(ledgerKey: string): Era {
    const slot = this.#slots ? slotOf(ledgerKey) : 0
    let era = this.#eras.get(slot)
    if (!era) {
      const key = this.#slots ? `${this.#prefix}:era{${this.#slots.nameOf(slot)}}` : `${this.#prefix}:era`
      era = { key, createdAt: 0, lost: 0, mattersUntil: 0 }
      this.#eras.set(slot, era)
    }
    return era
  }
}

/** Takes note of an era that is another one than a request had; throws if counts were lost that still mattered. */
export function compareEra(era: Era, sent: number, createdAt: number, nowMs: number): void {
  if (sent === 0 || sent === createdAt) return
  if (sent === era.createdAt) {
    if (nowMs < era.mattersUntil) era.lost = era.createdAt
    era.createdAt = 0
    era.mattersUntil = 0
  }
  if (sent === era.lost) throw new CountsLost()
}

/** For each slot of a Cluster a number whose text is in it. */
class SlotNames {
  readonly #names: (number | undefined)[] = new Array(SLOTS)
  #next = 0

  nameOf(slot: number): number {
    for (; this.#names[slot] === undefined; this.#next++) this.#names[slotOf(String(this.#next))] ??= this.#next
    return this.#names[slot]
  }
}
