import type { Charge } from './charge.ts'
import { type LocalCharge, localCharge, type MemoryStore } from './memory.ts'
import type { RedisStore } from './redis.ts'
import { type RedisCharge, type RedisCounter, redisCharge } from './redis-counter.ts'
import type { Table } from './table.ts'

/** What a rule does while Redis cannot be asked: count here, let all calls pass, or none. */
export type Emergency = 'local' | 'allow' | 'refuse'

/** A charge to counts that the whole fleet shares, with what stands in for them while Redis cannot be asked. */
export interface SharedCharge extends RedisCharge {
  readonly table: Table
  readonly emergency: Emergency
  /** Where it was counted in the end. */
  countedBy: 'redis' | 'memory' | 'nobody'
  slot: number
  /** When it was counted as passing, by the clock of whoever counted it. */
  moment: number
}

export function sharedCharge(counter: RedisCounter, table: Table, emergency: Emergency): SharedCharge {
  return { ...redisCharge(counter), table, emergency, countedBy: 'nobody', slot: 0, moment: 0 }
}

/** How it stands with the store that the fleet shares. */
export interface StoreStatus {
  readonly healthy: boolean
  /** Milliseconds since 1970. */
  readonly since: number
  /** Why it is not healthy. */
  readonly trouble?: string | undefined
}

/**
 * Counts in Redis, and in this process where Redis does not answer in time: a call waits no longer than `timeoutMs` for it,
 * and no call fails because of it. What a late answer turns out to have counted is given back.
 */
export class SharedStore {
  readonly #redis: RedisStore
  readonly #memory: MemoryStore
  readonly #timeoutMs: number
  readonly #onChange: (status: StoreStatus) => void
  #status: StoreStatus = { healthy: true, since: Date.now() }

  constructor(
    redis: RedisStore,
    memory: MemoryStore,
    options: { readonly timeoutMs: number; readonly onChange: (status: StoreStatus) => void },
  ) {
    this.#redis = redis
    this.#memory = memory
    this.#timeoutMs = options.timeoutMs
    this.#onChange = options.onChange
  }

  get status(): StoreStatus {
    return this.#status
  }

  /** Judges all charges at once: every one is counted, or, if one refuses, none. */
  async take(charges: readonly SharedCharge[], now: number): Promise<boolean> {
    const asked = this.#redis.take(charges)
    try {
      const answer = await within(asked, this.#timeoutMs)
      this.#tell(true)
      for (const charge of charges) Object.assign(charge, { countedBy: 'redis', moment: answer.now + charge.wait })
      return answer.allowed
    } catch (error) {
      // an answer that comes later is nobody's: what it counted is given back
      asked.then(answer => answer.allowed && this.#redis.refund(charges, answer.now)).catch(() => {})
      this.#tell(false, error)
      return this.#standIn(charges, now, true)
    }
  }

  /** Judges all charges without counting any. */
  async look(charges: readonly SharedCharge[], now: number): Promise<boolean> {
    try {
      const answer = await within(this.#redis.look(charges), this.#timeoutMs)
      this.#tell(true)
      return answer.allowed
    } catch (error) {
      this.#tell(false, error)
      return this.#standIn(charges, now, false)
    }
  }

  giveBack({ counter, key, cost, moment }: SharedCharge): void {
    this.#redis.giveBack([{ counter, key, cost, moment }])
  }

  async reset(counter: RedisCounter, key: string): Promise<void> {
    await this.#redis.reset(counter, key)
  }

  #standIn(charges: readonly SharedCharge[], now: number, counting: boolean): boolean {
    const counted = charges.filter(({ emergency }) => emergency === 'local')
    const local = counted.map(({ table, key, cost, enforced, mayWait }): LocalCharge => {
      return { ...localCharge(table), key, cost, enforced, mayWait }
    })
    const allowed = counting ? this.#memory.take(local, local.length, now) : this.#memory.look(local, local.length, now)
    counted.forEach((charge, i) => {
      const { delays, wait, fits, remaining, resets, slot } = local[i]!
      Object.assign(charge, { delays, wait, fits, remaining, resets, slot, countedBy: 'memory', moment: now + wait })
    })
    const refusing = charges.filter(({ emergency }) => emergency === 'refuse')
    for (const charge of charges) if (charge.emergency !== 'local') fill(charge, charge.emergency === 'refuse')
    return allowed && refusing.every(({ enforced }) => !enforced)
  }

  #tell(healthy: boolean, error?: unknown): void {
    if (healthy === this.#status.healthy) return
    const trouble = healthy ? undefined : error instanceof Error ? error.message : String(error)
    this.#status = { healthy, since: Date.now(), trouble }
    this.#onChange(this.#status)
  }
}

/** What a rule says that counts nothing. */
function fill(charge: Charge & { readonly counter: RedisCounter }, refuses: boolean): void {
  const delay = refuses ? Number.POSITIVE_INFINITY : 0
  charge.wait = delay
  charge.fits = !refuses
  charge.counter.meters.forEach((_, level) => {
    charge.delays[level] = delay
    charge.remaining[level] = 0
    charge.resets[level] = 0
  })
}

async function within<T>(answer: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
