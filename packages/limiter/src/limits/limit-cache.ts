import { setTimeout as pause } from 'node:timers/promises'
import type { Limit } from '../algorithms/algorithm.ts'
import { parseRate } from '../rules/limit-text.ts'

/** The limit of one caller, as a source has it: text such as `5000/h`, or JSON with the moment until which it holds. */
export interface CallerLimit {
  readonly limit: Limit
  /** Milliseconds since 1970; Infinity if it has no end. */
  readonly untilMs: number
}

export interface LimitCacheOptions {
  /** Asks for the limit of a caller: its text, or undefined if they have none of their own. */
  readonly ask: (caller: Readonly<Record<string, string>>) => Promise<unknown>
  readonly refreshMs: number
  /** Called when a source begins to fail or to answer what is no limit, once until it answers again. */
  readonly onTrouble: (trouble: string) => void
  readonly most?: number | undefined
  readonly timeoutMs?: number | undefined
}

interface Entry {
  known: CallerLimit | undefined
  askedAt: number
  isAsking: boolean
  /** The value that a user of the cache has made of what is known. */
  usedBy: unknown
  state: unknown
}

export type { Entry as LimitEntry }

const MOST_KEPT = 10_000
const MOST_QUESTIONS = 100
/** The longest time that a source may take to answer. */
export const TIMEOUT_MS = 2000
export const LONGEST_TEXT = 1024

/**
 * Limits of single callers, asked for in the background: a call never waits for one. As many are kept as the bound allows; each is
 * asked for once at a time, and again after a while; if the source fails, the last one stays.
 */
export class LimitCache {
  readonly #options: LimitCacheOptions
  readonly #entries = new Map<string, Entry>()
  #questions = 0
  #hasTrouble = false

  constructor(options: LimitCacheOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#entries.size
  }

  /** Returns what is known of a caller; undefined if they were never asked for. */
  find(key: string): Entry | undefined {
    return this.#entries.get(key)
  }

  /** True if a caller has to be asked for. */
  isDue(entry: Entry | undefined, nowMs: number): boolean {
    return entry === undefined || (!entry.isAsking && nowMs - entry.askedAt >= this.#options.refreshMs)
  }

  /** Asks for the limit of a caller; not if they cannot be named. */
  ask(key: string, caller: Readonly<Record<string, string>> | undefined, nowMs: number): void {
    const known = this.#entries.get(key)
    const askedAt = Number.NEGATIVE_INFINITY
    const entry = known ?? { known: undefined, askedAt, isAsking: false, usedBy: undefined, state: undefined }
    if (known === undefined) this.#keep(key, entry)
    this.#ask(entry, caller, nowMs)
  }

  /** Marks what is known of a caller as old: it is asked for again with the next call. */
  refresh(key: string): void {
    const entry = this.#entries.get(key)
    if (entry) entry.askedAt = Number.NEGATIVE_INFINITY
  }

  #keep(key: string, entry: Entry): void {
    const [oldest] = this.#entries.keys()
    if (this.#entries.size >= (this.#options.most ?? MOST_KEPT) && oldest !== undefined) this.#entries.delete(oldest)
    this.#entries.set(key, entry)
  }

  #ask(entry: Entry, caller: Readonly<Record<string, string>> | undefined, nowMs: number): void {
    if (caller !== undefined && this.#questions >= MOST_QUESTIONS) return
    entry.askedAt = nowMs
    if (caller === undefined) return
    entry.isAsking = true
    this.#questions++
    void this.#read(caller)
      .then(
        known => {
          entry.known = known
          entry.usedBy = undefined
          this.#hasTrouble = false
        },
        error => this.#report(error instanceof Error ? error.message : String(error)),
      )
      .finally(() => {
        entry.isAsking = false
        this.#questions--
      })
  }

  async #read(caller: Readonly<Record<string, string>>): Promise<CallerLimit | undefined> {
    const { ask, timeoutMs = TIMEOUT_MS } = this.#options
    const ended = new AbortController()
    const late = pause(timeoutMs, 'late' as const, { ref: false, signal: ended.signal }).catch(() => 'late' as const)
    const answer = await Promise.race([Promise.resolve().then(() => ask(caller)), late]).finally(() => ended.abort())
    if (answer === 'late') throw new Error(`has not answered within ${timeoutMs} ms`)
    return readLimit(answer)
  }

  #report(trouble: string): void {
    if (this.#hasTrouble) return
    this.#hasTrouble = true
    this.#options.onTrouble(trouble)
  }
}

/** Reads the answer of a source; throws if it is no limit. */
export function readLimit(answer: unknown): CallerLimit | undefined {
  if (answer === undefined || answer === null || answer === '') return undefined
  if (typeof answer === 'number') return limitOf(answer, undefined)
  if (typeof answer === 'object') return limitIn(answer)
  if (typeof answer !== 'string' || answer.length > LONGEST_TEXT) throw unreadable(answer)
  const text = answer.trim()
  if (text === '') return undefined
  if (!/^[{["]/.test(text)) return limitOf(text, undefined)
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? limitIn(value) : limitOf(value, undefined)
  } catch {
    throw unreadable(text)
  }
}

function limitIn(value: object): CallerLimit | undefined {
  const { limit, until } = value as { limit?: unknown; until?: unknown }
  return limitOf(limit, until)
}

function limitOf(limit: unknown, until: unknown): CallerLimit {
  const untilMs = until === undefined || until === null ? Number.POSITIVE_INFINITY : momentOf(until)
  if (Number.isNaN(untilMs)) throw unreadable(until)
  const isCount = typeof limit === 'number' || (typeof limit === 'string' && /^\d{1,13}$/.test(limit))
  if (isCount && Number.isSafeInteger(Number(limit)) && Number(limit) >= 0) {
    return { limit: { count: Number(limit), periodMs: 0 }, untilMs }
  }
  const rate = typeof limit === 'string' ? parseRate(limit) : undefined
  if (rate === undefined) throw unreadable(limit)
  return { limit: rate, untilMs }
}

function momentOf(until: unknown): number {
  return typeof until === 'number' ? until : typeof until === 'string' ? Date.parse(until) : Number.NaN
}

function unreadable(value: unknown): Error {
  const shown = typeof value === 'string' ? JSON.stringify(value.slice(0, 60)) : typeof value
  return new Error(`has answered ${shown}, which is no limit: write 5000/h, or {"limit":"5000/h","until":"2026-12-01"}`)
}
