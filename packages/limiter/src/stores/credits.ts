import { setTimeout as pause } from 'node:timers/promises'

/** The most that one caller may have: sums stay exact. */
export const MOST_CREDIT = 1e15
/** So many callers have credit in one process at most, if there is no store. */
const MOST_CALLERS = 1_000_000
/** For how long a caller with too little credit is not asked for again: so soon a grant of another process is seen. */
const KNOWN_MS = 300
const MOST_KNOWN = 10_000

/** Permits of single callers beside the limits of their rules. They are used when the limit refuses, and stay until then. */
export interface CreditStore {
  /** Returns how many there are then; undefined if they were too many to be added. */
  add(rule: string, key: string, permits: number): number | undefined | Promise<number | undefined>
  /** Takes all of them or none; returns whether they were there. */
  take(rule: string, key: string, permits: number): boolean | Promise<boolean>
  /** Takes as many of them as there are. */
  spend(rule: string, key: string, permits: number): void
  left(rule: string, key: string): number | Promise<number>
}

/** In this process, for a limiter without a store: it ends with the process. */
export class MemoryCredits implements CreditStore {
  readonly #left = new Map<string, number>()

  add(rule: string, key: string, permits: number): number | undefined {
    const left = this.left(rule, key)
    if (left + permits > MOST_CREDIT || (left === 0 && this.#left.size >= MOST_CALLERS)) return undefined
    this.#left.set(nameOf(rule, key), left + permits)
    return left + permits
  }

  take(rule: string, key: string, permits: number): boolean {
    const left = this.left(rule, key)
    if (left < permits) return false
    this.#set(rule, key, left - permits)
    return true
  }

  spend(rule: string, key: string, permits: number): void {
    this.#set(rule, key, Math.max(0, this.left(rule, key) - permits))
  }

  left(rule: string, key: string): number {
    return this.#left.size === 0 ? 0 : (this.#left.get(nameOf(rule, key)) ?? 0)
  }

  #set(rule: string, key: string, left: number): void {
    if (left > 0) this.#left.set(nameOf(rule, key), left)
    else this.#left.delete(nameOf(rule, key))
  }
}

/** After a question that was not answered, none is asked for so long. */
const AWAY_MS = 1000

/** How many permits were added or taken, and how many are left. */
export interface Moved {
  readonly moved: number
  readonly left: number
}

/** Adds permits to the credit of a caller, takes all of them or none, or spends as many as there are, in a store. */
export type MoveCredit = (what: 'add' | 'take' | 'spend', caller: string, permits: number) => Promise<Moved>

export interface SharedCreditsOptions {
  readonly move: MoveCredit
  /** How long a call may wait for the answer. */
  readonly timeoutMs: number
  readonly nowMs: () => number
}

/** In a store, for all processes. */
export class SharedCredits implements CreditStore {
  readonly #options: SharedCreditsOptions
  /** Callers who were seen with too little: how much, and until when that is believed. */
  readonly #known = new Map<string, { readonly left: number; readonly until: number }>()
  #awayUntil = Number.NEGATIVE_INFINITY

  constructor(options: SharedCreditsOptions) {
    this.#options = options
  }

  async add(rule: string, key: string, permits: number): Promise<number | undefined> {
    const { moved, left } = await this.#run('add', rule, key, permits)
    this.#known.delete(nameOf(rule, key))
    return moved === permits ? left : undefined
  }

  /** An answer that comes too late is undone: the call was refused meanwhile. While the store is away, no call waits for it. */
  take(rule: string, key: string, permits: number): boolean | Promise<boolean> {
    const now = this.#options.nowMs()
    const known = this.#known.get(nameOf(rule, key))
    if (now < this.#awayUntil || (known !== undefined && known.left < permits && now < known.until)) return false
    return new Promise(resolve => {
      let isLate = false
      const fail = (): void => {
        this.#awayUntil = this.#options.nowMs() + AWAY_MS
        resolve(false)
      }
      const timer = setTimeout(() => {
        isLate = true
        fail()
      }, this.#options.timeoutMs)
      const hear = ({ moved, left }: Moved): void => {
        clearTimeout(timer)
        if (isLate && moved > 0) void this.add(rule, key, moved).catch(() => {})
        if (moved === 0) this.#know(nameOf(rule, key), left)
        resolve(moved === permits)
      }
      this.#run('take', rule, key, permits).then(hear, () => {
        clearTimeout(timer)
        if (!isLate) fail()
      })
    })
  }

  spend(rule: string, key: string, permits: number): void {
    void this.#run('spend', rule, key, permits).catch(() => {})
  }

  async left(rule: string, key: string): Promise<number> {
    const late = pause(this.#options.timeoutMs, undefined, { ref: false })
    const answer = await Promise.race([this.#run('take', rule, key, 0), late])
    if (answer === undefined) throw new Error('the store has not answered in time')
    return answer.left
  }

  #run(what: 'add' | 'take' | 'spend', rule: string, key: string, permits: number): Promise<Moved> {
    return this.#options.move(what, nameOf(rule, key), permits)
  }

  #know(name: string, left: number): void {
    const [oldest] = this.#known.keys()
    this.#known.delete(name)
    if (this.#known.size >= MOST_KNOWN) this.#known.delete(oldest!)
    this.#known.set(name, { left, until: this.#options.nowMs() + KNOWN_MS })
  }
}

function nameOf(rule: string, key: string): string {
  return JSON.stringify([rule, key])
}
