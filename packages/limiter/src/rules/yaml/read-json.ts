import { isMap } from '../is-map.ts'

// a document beyond these bounds is read as YAML, which reports positions
const DEEPEST = 16
const MAX_ITEMS = 10_000
const MAX_ENTRIES = 1000

const [quote, backslash, colon, space, smallE, largeE] = [0x22, 0x5c, 0x3a, 0x20, 0x65, 0x45]

/**
 * Returns the value of a text in JSON, read many times faster than as YAML; undefined if YAML would read it differently or finds a
 * mistake: a duplicate key, a number not in plain digits, too much of anything.
 */
export function readJson(text: string): unknown {
  if (!text.trimStart().startsWith('{')) return undefined
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  const written = countNames(text)
  return written !== undefined && written === countEntries(value, 0) ? value : undefined
}

/** Counts the keys with a value in a JSON text; undefined if a number has an exponent. */
function countNames(text: string): number | undefined {
  let names = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quote) {
      at = endOfString(text, at)
      let next = at + 1
      while (text.charCodeAt(next) <= space) next++
      if (text.charCodeAt(next) === colon) names++
    } else if ((code === smallE || code === largeE) && isDigit(text.charCodeAt(at - 1))) return undefined
  }
  return names
}

function endOfString(text: string, start: number): number {
  let at = start + 1
  while (text.charCodeAt(at) !== quote) at += text.charCodeAt(at) === backslash ? 2 : 1
  return at
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39
}

/** Counts the entries of all maps of a value together; NaN if one of them is not for rules. */
function countEntries(value: unknown, depth: number): number {
  if (depth > DEEPEST) return Number.NaN
  if (Array.isArray(value)) {
    return value.length > MAX_ITEMS ? Number.NaN : value.reduce((sum, item) => sum + countEntries(item, depth + 1), 0)
  }
  if (!isMap(value)) return 0
  const names = Object.keys(value)
  if (names.length > MAX_ENTRIES || names.includes('__proto__') || names.includes('<<')) return Number.NaN
  return names.reduce((sum, word) => sum + countEntries(value[word], depth + 1), names.length)
}
