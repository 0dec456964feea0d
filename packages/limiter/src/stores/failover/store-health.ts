import type { LeaseStats } from '../leases/lease-book.ts'
import type { StoreError, TroubleKind } from '../store-error.ts'
import type { StoreCode } from '../store-error-causes.ts'

/** A time without the store. */
export interface Outage {
  /** Milliseconds since 1970. */
  readonly since: number
  /** When it was over; none while it lasts. */
  readonly until?: number | undefined
  readonly kind: TroubleKind
  readonly code: StoreCode
  /** The outage in an operator's words. */
  readonly what: string
  /** The message of the store or of the system. */
  readonly trouble: string
  readonly remedy: string
  /** Calls judged in this process meanwhile. */
  readonly calls: number
  /** Of these, as far as can be told: admitted beyond the limit, and refused where the fleet might have had room. */
  readonly over: number
  readonly under: number
}

/** How calls were decided whose rules are counted in the store; each call is in one of three counts. */
export interface StoreStats {
  /** Calls that the store was asked about. */
  readonly asked: number
  /** Calls that were decided without it and without leases: keys with nothing left, and all while it cannot be asked. */
  readonly decidedHere: number
  /** Permits that this process holds in advance; `leases.decided` are the other calls. */
  readonly leases: LeaseStats
}

/** How it stands with the store that the fleet shares. */
export interface StoreStatus extends StoreStats {
  readonly healthy: boolean
  /** Since when; milliseconds since 1970. */
  readonly since: number
  /** Why it is not healthy: what kind of trouble, and in which words. */
  readonly kind?: TroubleKind | undefined
  readonly code?: StoreCode | undefined
  readonly what?: string | undefined
  readonly trouble?: string | undefined
  /** What to do about it. */
  readonly remedy?: string | undefined
  /** How many processes count together; `known` is false as long as the store has not told. */
  readonly fleet: { readonly size: number; readonly rank: number; readonly known: boolean }
  /** The rules that are counted in this process at this moment, though they belong to the fleet. */
  readonly rules: readonly string[]
  /** The last times without the store, the latest last. */
  readonly outages: readonly Outage[]
  /** The last times when the clock of the store stepped, the latest last. */
  readonly clockSteps: readonly ClockStep[]
}

/** A step of the clock of the store. */
export interface ClockStep {
  /** When it was noticed; milliseconds since 1970, by the clock of this process. */
  readonly at: number
  /** How far, in milliseconds; negative if the clock stepped back. */
  readonly byMs: number
}

type Changing<T> = { -readonly [K in keyof T]: T[K] }

const REMEMBERED = 20

/** Remembers when the store could not be asked, and what that cost. */
export class StoreHealth {
  readonly #outages: Changing<Outage>[] = []
  readonly #clockSteps: ClockStep[] = []
  #since = Date.now()

  get isHealthy(): boolean {
    return this.#current === undefined
  }

  get since(): number {
    return this.#since
  }

  get outages(): readonly Outage[] {
    return this.#outages.map(outage => ({ ...outage }))
  }

  get clockSteps(): readonly ClockStep[] {
    return [...this.#clockSteps]
  }

  clockStepped(byMs: number): void {
    this.#clockSteps.push({ at: Date.now(), byMs })
    if (this.#clockSteps.length > REMEMBERED) this.#clockSteps.shift()
  }

  get trouble(): Pick<Outage, 'kind' | 'code' | 'what' | 'trouble' | 'remedy'> | undefined {
    if (this.#current === undefined) return undefined
    const { kind, code, what, trouble, remedy } = this.#current
    return { kind, code, what, trouble, remedy }
  }

  begin({ kind, code, what, message, remedy }: StoreError): void {
    this.#since = Date.now()
    const trouble = { kind, code, what, trouble: message, remedy }
    this.#outages.push({ since: this.#since, ...trouble, calls: 0, over: 0, under: 0 })
    if (this.#outages.length > REMEMBERED) this.#forgetShortest()
  }

  /** The cause is another one than was thought, and more is known of it; false if not. */
  explain({ kind, code, what, message, remedy }: StoreError): boolean {
    const current = this.#current
    if (!current || current.code === code || isVague(code)) return false
    // that the server is away says less than what it answered before
    if (kind === 'down' && !isVague(current.code)) return false
    Object.assign(current, { kind, code, what, trouble: message, remedy })
    return true
  }

  end(): void {
    const current = this.#current
    this.#since = Date.now()
    if (current) current.until = this.#since
  }

  /** A call was judged in this process; `counted` tells whether any rule counted it. */
  judged(allowed: boolean, counted: boolean): void {
    const current = this.#current
    if (!current) return
    current.calls++
    if (!allowed) current.under++
    else if (!counted) current.over++
  }

  /** What was admitted and did not fit into the limit when it was told to the store. */
  exceeded(calls: number): void {
    const latest = this.#outages.at(-1)
    if (latest) latest.over += calls
  }

  /** A connection that flaps must not push the outage out of the list that mattered. */
  #forgetShortest(): void {
    const lengthOf = ({ since, until = Number.POSITIVE_INFINITY }: Outage) => until - since
    let shortest = 0
    for (const [i, outage] of this.#outages.entries()) {
      if (lengthOf(outage) < lengthOf(this.#outages[shortest]!)) shortest = i
    }
    this.#outages.splice(shortest, 1)
  }

  get #current(): Changing<Outage> | undefined {
    const latest = this.#outages.at(-1)
    return latest?.until === undefined ? latest : undefined
  }
}

/** Codes of what is only known not to be answered. */
function isVague(code: StoreCode): boolean {
  return code === 'STORE_UNREACHABLE' || code === 'STORE_SILENT'
}
