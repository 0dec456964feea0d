import { commentLine } from 'diana-limiter/admin'
import type { Identity, Role } from './identity/identity.ts'

/** One change that was made through the admin API, or one that was refused. */
export interface AuditEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  /** The id of the operation, as the OpenAPI document names it; `signIn` for a request without a role. */
  readonly operation: string
  /** The rule, document, trial, caller or block that was changed; masked where it names a caller. */
  readonly subject: string
  /** The address that the request came from. */
  readonly from: string
  /** The name of the user, or which token was given. */
  readonly who: string
  /** The way in which they were recognized, so that a user cannot pass for a token by a name. */
  readonly via: Identity['via'] | 'none'
  readonly role: Role | 'none'
  /** The reason why nothing was changed; left out for a change. */
  readonly refused?: string | undefined
  /** The reason why it was made, if the operator said so. */
  readonly comment?: string | undefined
}

const most = 1000
const mostRefused = 200
const longestText = 256
const longestSubject = 120
/** Refusals beyond this are not recorded: anyone can cause them. One client can cause a part of them only. */
const refusedPerMinute = 60
const refusedOfClientPerMinute = 20
const minuteMs = 60_000

/** Records who changed what, and when; and who was refused, in a list of their own, so that guesses push out no change. */
export class Audit {
  readonly #changes: AuditEntry[] = []
  readonly #refused: AuditEntry[] = []
  readonly #onEntry: (entry: AuditEntry) => void

  /** Begins with the entries of earlier runs; `onEntry` gets each new one. */
  constructor(earlier: readonly AuditEntry[] = [], onEntry: (entry: AuditEntry) => void = () => {}) {
    this.#onEntry = onEntry
    for (const entry of earlier) this.#keep(entry)
  }

  add(entry: AuditEntry): void {
    const bounded = {
      ...entry,
      subject: seen(entry.subject, longestSubject),
      from: seen(entry.from, longestText),
      who: seen(entry.who, longestText),
    }
    if (bounded.refused !== undefined && this.#isKnown(bounded)) return
    this.#keep(bounded)
    this.#onEntry(bounded)
  }

  /** Returns the newest changes first. */
  read(count: number): AuditEntry[] {
    return this.#changes.slice(-count).reverse()
  }

  /** Returns the newest refusals first. */
  readRefused(count: number): AuditEntry[] {
    return this.#refused.slice(-count).reverse()
  }

  #keep(entry: AuditEntry): void {
    const [list, bound] = entry.refused === undefined ? [this.#changes, most] : [this.#refused, mostRefused]
    list.push(entry)
    if (list.length > bound) list.splice(entry.refused === undefined ? 0 : oldestOfLoudest(list), 1)
  }

  /** True if the same was refused in the last minute, or too much was. */
  #isKnown({ at, who, from, operation, refused }: AuditEntry): boolean {
    const lately = this.#refused.filter(entry => at - entry.at < minuteMs)
    if (lately.length >= refusedPerMinute) return true
    if (lately.filter(one => isOneClient(one, { who, from })).length >= refusedOfClientPerMinute) return true
    return lately.some(
      one => one.who === who && one.from === from && one.operation === operation && one.refused === refused,
    )
  }
}

type Client = Pick<AuditEntry, 'who' | 'from'>

function isOneClient(one: Client, other: Client): boolean {
  return one.who === other.who && one.from === other.from
}

/** Returns the place of the oldest entry of the client with the most entries: a flood pushes out entries of its own. */
function oldestOfLoudest(entries: readonly AuditEntry[]): number {
  const counts = new Map<string, number>()
  const nameOf = ({ who, from }: Client): string => JSON.stringify([who, from])
  for (const entry of entries) counts.set(nameOf(entry), (counts.get(nameOf(entry)) ?? 0) + 1)
  const most = Math.max(...counts.values())
  return entries.findIndex(entry => counts.get(nameOf(entry)) === most)
}

/** Returns text for other operators, on one line and without what could deceive them. */
function seen(text: string, longest: number): string {
  return commentLine(text)
    .slice(0, longest)
    .replace(/\p{Cs}/gu, '')
}
