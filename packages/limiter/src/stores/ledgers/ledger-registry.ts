import { randomBytes } from 'node:crypto'
import type { Membership, MembershipRegistry, SignOfLife } from '../membership/registry.ts'
import { ShareBook, type ShareClaim, type ShareGrant, type WrittenShares } from '../membership/shares.ts'
import type { TransactionalStore } from '../transactional-store.ts'
import { transact } from './transact.ts'

/** The last heartbeat of a process, in milliseconds, and whether it is back. */
type Sign = readonly [at: number, isBack: boolean]

/** The processes that count together, as they are stored: time never goes back for them. */
interface WrittenFleet {
  readonly era: string
  readonly at: number
  readonly members: Readonly<Record<string, Sign>>
}

export interface LedgerRegistryOptions {
  readonly prefix?: string | undefined
  /** Microseconds, if the store gives no time of its own. */
  readonly now?: (() => number) | undefined
  /** The name of this process, for tests and cases: ranks are in the order of the names. */
  readonly id?: string | undefined
}

const KEPT_US = 86_400_000_000

/** The processes that count in one store of the user under one prefix, in two ledgers of their own. */
export class LedgerRegistry implements MembershipRegistry {
  readonly #store: TransactionalStore
  readonly #now: () => number
  readonly #id: string
  readonly #fleetKey: string
  readonly #sharesKey: string

  constructor(store: TransactionalStore, options: LedgerRegistryOptions = {}) {
    const { prefix = 'diana', now = () => Date.now() * 1000, id = randomBytes(8).toString('hex') } = options
    this.#store = store
    this.#now = now
    this.#id = id
    this.#fleetKey = `${prefix}:{fleet}`
    this.#sharesKey = `${prefix}:{shares}`
  }

  async register({ isBack, withinMs, memberMs }: SignOfLife): Promise<Membership> {
    const newEra = randomBytes(8).toString('hex')
    return await this.#change<WrittenFleet, Membership>(this.#fleetKey, (known, clockMs) => {
      const now = Math.max(clockMs, known?.at ?? 0)
      const others = Object.entries(known?.members ?? {}).filter(([, [at]]) => now - at <= memberMs)
      const members = new Map([...others, [this.#id, [now, isBack]]] as [string, Sign][])
      const heard = [...members.values()].filter(([at]) => now - at <= withinMs)
      const fleet = { era: known?.era ?? newEra, at: now, members: Object.fromEntries(members) }
      const membership = {
        era: fleet.era,
        size: members.size,
        rank: [...members.keys()].sort().indexOf(this.#id),
        heard: heard.length,
        back: heard.filter(([, isBack]) => isBack).length,
      }
      return [fleet, membership]
    })
  }

  async era(): Promise<string | undefined> {
    return await this.#change<WrittenFleet, string | undefined>(this.#fleetKey, known => [undefined, known?.era])
  }

  async share(claim: ShareClaim): Promise<ShareGrant | undefined> {
    return await this.#change<WrittenShares, ShareGrant | undefined>(this.#sharesKey, (known, now) => {
      const book = new ShareBook(known)
      const grant = book.claim(this.#id, claim, now)
      return [book.toJSON(), grant]
    })
  }

  /** How many processes take part. */
  async count(): Promise<number> {
    return await this.#change<WrittenFleet, number>(this.#fleetKey, known => {
      return [undefined, Object.keys(known?.members ?? {}).length]
    })
  }

  async leave(): Promise<void> {
    await this.#change<WrittenShares, void>(this.#sharesKey, known => {
      const book = new ShareBook(known)
      book.leave(this.#id)
      return [book.toJSON(), undefined]
    })
    await this.#change<WrittenFleet, void>(this.#fleetKey, known => {
      if (known === undefined) return [undefined, undefined]
      const { [this.#id]: _, ...members } = known.members
      return [{ ...known, members }, undefined]
    })
  }

  /** Runs a change of one ledger of the registry, which is written if it returns one. */
  #change<Written, Result>(
    key: string,
    change: (known: Written | undefined, nowMs: number) => readonly [written: Written | undefined, result: Result],
  ): Promise<Result> {
    return transact(this.#store, [key], this.#now, (ledgers, now) => {
      const [written, result] = change(readJson<Written>(ledgers.get(key)), now / 1000)
      const changed = written ? [{ key, text: JSON.stringify(written), lastsUs: KEPT_US }] : []
      return { changed, result }
    })
  }
}

/** What another program has written is as good as nothing. */
function readJson<Written>(text: string | null | undefined): Written | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null')
    return typeof value === 'object' && value !== null ? (value as Written) : undefined
  } catch {
    return undefined
  }
}
