import type { Mistake } from 'diana-limiter'
import { type PlacedValues, suggest } from 'diana-limiter/schema'
import type { Place } from './case-file.ts'

export type Path = readonly PropertyKey[]

/** No more mistakes than this are reported of one file. */
const MOST_MISTAKES = 50
const MOST_SHOWN = 60
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** Reads values of one file and notes mistakes with their places. A value with a mistake is undefined. */
export class Reader {
  readonly mistakes: Mistake[]
  readonly #file: string
  readonly #values: PlacedValues

  constructor(file: string, values: PlacedValues) {
    this.#file = file
    this.#values = values
    this.mistakes = [...values.mistakes]
  }

  place(path: Path, atName = false): Place {
    return { file: this.#file, ...this.#values.placeOf(path, atName) }
  }

  fault(path: Path, message: string, atName = false): undefined {
    if (this.mistakes.length < MOST_MISTAKES)
      this.mistakes.push({ ...this.place(path, atName), message: safe(message) })
    return undefined
  }

  /** Reads a map whose words are all known; a word that is not gets the nearest one. */
  map(
    value: unknown,
    path: Path,
    known: readonly string[],
    what: string,
  ): Readonly<Record<string, unknown>> | undefined {
    if (!isMap(value)) return this.fault(path, `${what} must be a map, not ${show(value)}`)
    for (const word of Object.keys(value)) if (!known.includes(word)) this.unknown(word, [...path, word], known)
    return value
  }

  unknown(word: string, path: Path, known: readonly string[]): void {
    const meant = suggest(word, known)
    this.fault(
      path,
      `${show(word)} is not known here: ${meant ? `did you mean ${meant}?` : `write ${orList(known)}`}`,
      true,
    )
  }

  /** Reads a name that the rules define; for an unknown name it reports the nearest one. */
  name(word: string, path: Path, known: readonly string[], what: string): string | undefined {
    if (known.includes(word)) return word
    const meant = suggest(word, known)
    const remedy = meant ? `did you mean ${meant}?` : `write ${orList(known)}`
    return this.fault(path, `there is no ${what} ${show(word)} in the rules: ${remedy}`)
  }

  text(value: unknown, path: Path, what: string, most = 4096): string | undefined {
    if (typeof value === 'number' || typeof value === 'boolean') return String(value)
    if (typeof value !== 'string' || value === '') return this.fault(path, `${what} must be text, not ${show(value)}`)
    return value.length <= most ? value : this.fault(path, `${what} must have at most ${most} characters`)
  }

  whole(value: unknown, path: Path, what: string, least: number, most: number): number | undefined {
    const number = typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
    if (typeof number === 'number' && Number.isInteger(number) && number >= least && number <= most) return number
    return this.fault(path, `${what} must be a whole number from ${least} to ${most}, not ${show(value)}`)
  }

  duration(value: unknown, path: Path, what: string): number | undefined {
    const us = typeof value === 'string' ? durationUs(value) : value === 0 ? 0 : undefined
    if (us !== undefined) return us
    const hint = typeof value === 'number' ? `: write ${value}ms or ${value}s` : ''
    return this.fault(path, `${what} must be a time such as 300ms, 10s, 1h30m or 30d, not ${show(value)}${hint}`)
  }
}

const UNITS: Readonly<Record<string, number>> = { us: 1, ms: 1e3, s: 1e6, m: 60e6, h: 3600e6, d: 86_400e6 }
const LONGEST_US = 10 * 366 * 86_400e6

/** Microseconds of `300ms`, `1h30m`, `1.5s` or `0`; undefined for anything else. */
export function durationUs(text: string): number | undefined {
  if (text === '0') return 0
  if (text.length > 40 || !/^(?:\d{1,12}(?:\.\d{1,6})?(?:us|ms|s|m|h|d) ?)+$/.test(`${text} `)) return undefined
  let us = 0
  for (const [, number, unit] of text.matchAll(/(\d+(?:\.\d+)?)(us|ms|s|m|h|d)/g)) us += Number(number) * UNITS[unit!]!
  us = Math.round(us)
  return us <= LONGEST_US ? us : undefined
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function show(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a map'
  const text = String(value)
  return `"${text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text}"`
}

export function safe(text: string): string {
  return text.replace(UNSAFE, letter => `\\u${letter.codePointAt(0)!.toString(16).padStart(4, '0')}`)
}

const MOST_LISTED = 12

export function orList(names: readonly string[]): string {
  const shown = names.slice(0, MOST_LISTED)
  if (names.length > MOST_LISTED) return `${shown.join(', ')}, …`
  return shown.length < 2 ? shown.join() : `${shown.slice(0, -1).join(', ')} or ${shown.at(-1)}`
}
