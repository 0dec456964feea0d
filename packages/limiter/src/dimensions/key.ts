import type { Call } from '../call.ts'
import { nodeCrypto } from '../common/node-modules.ts'
import { DianaError } from '../errors.ts'
import { APPLICATION_DIMENSIONS, type Dimension } from './dimension.ts'
import { addressDimension, findDimension } from './find-dimension.ts'
import { ip } from './ip.ts'

/** Reads the key under which a rule counts a call: equal keys are one caller, different keys are different callers. */
export type KeyReader = (call: Call) => string

type ValueReader = (call: Call) => unknown

const MAX_VALUE = 128

// Encoded parts begin with one of these; a value that begins so is escaped.
const FIRST_PLAIN = 0x20
/** The first character that is not printable ASCII; some of those beyond it are blanks. */
const FIRST_UNUSUAL = 0x7f
const ESCAPED = '\u0001'
const BY_ADDRESS = '\u0002'
const DIGESTED = '\u0003'
const ABSENT = '\u0004'

/** The way to count a call without the dimension's value: not at all, together with all such calls, or by its address. */
export type Missing = 'skip' | 'shared' | 'address'

/** The place where the names of a rule's `by` are looked up. */
export interface KeyInput {
  readonly identify: Readonly<Record<string, readonly string[]>>
  readonly dimensions: readonly Dimension[]
  /** Left out: `address` for dimensions that the application or `identify` gives, else `shared`. */
  readonly missing?: Missing | undefined
}

/**
 * Turns the names of a rule's `by` into one reader. Each is looked up in the application's `call.attributes`,
 * then in `identify`, then among the dimensions.
 */
export function compileKey(by: readonly string[], lookup: KeyInput): KeyReader {
  return joinParts(by.map(name => compilePart(name, lookup)))
}

function joinParts(parts: KeyReader[]): KeyReader {
  const last = parts.pop()
  if (last === undefined) return () => ''
  const [first, ...between] = parts
  if (first === undefined) return last
  if (between.length === 0) return call => `${measured(first(call))}${last(call)}`
  return call => {
    let key = ''
    for (const part of parts) key += measured(part(call))
    return key + last(call)
  }
}

/** Adds a length prefix, which keeps two parts from being read as one. */
function measured(part: string): string {
  return `${part.length}:${part}`
}

/** Returns the reader of one dimension of a key. */
export function compilePart(name: string, lookup: KeyInput): KeyReader {
  const sources = sourcesOf(name, lookup)
  const read = compileValue(name, sources, lookup.dimensions)
  const isIdentified = sources !== undefined || APPLICATION_DIMENSIONS.includes(name)
  const missing = lookup.missing ?? (isIdentified ? 'address' : 'shared')
  const readAbsent = missing === 'address' ? addressOrAbsent(addressDimension(lookup.dimensions) ?? ip) : () => ABSENT
  return call => {
    const value = present(call.attributes?.[name]) ?? read(call)
    return isPlain(value) ? value : (part(value) ?? readAbsent(call))
  }
}

/** True if a value is its own part of a key, as most are. */
function isPlain(value: unknown): value is string {
  if (typeof value !== 'string' || value.length > MAX_VALUE) return false
  const code = value.charCodeAt(0)
  return code > FIRST_PLAIN && code < FIRST_UNUSUAL
}

/** Returns the field of a call in which a caller's value for `name` belongs; undefined if it is given as an attribute. */
export function fieldOf(name: string, lookup: KeyInput): Dimension['field'] {
  if (sourcesOf(name, lookup) !== undefined) return undefined
  return lookup.dimensions.find(one => one.name === name)?.field
}

/** Reads the value of a dimension, as a rule or a list of callers names it. */
export function readerOf(name: string, lookup: KeyInput): (call: Call) => string | undefined {
  const read = compileValue(name, sourcesOf(name, lookup), lookup.dimensions)
  return call => present(call.attributes?.[name]) ?? present(read(call))
}

/** Returns the sources that `identify` lists for a name. */
export function sourcesOf(name: string, { identify }: KeyInput): readonly string[] | undefined {
  return Object.hasOwn(identify, name) ? identify[name] : undefined
}

function compileValue(
  name: string,
  sources: readonly string[] | undefined,
  dimensions: readonly Dimension[],
): ValueReader {
  if (sources === undefined) {
    const read = findDimension(name, dimensions)
    if (read !== undefined) return read
    if (APPLICATION_DIMENSIONS.includes(name)) return () => undefined
    throw unknown(name)
  }
  const readers = sources.map(source => {
    const read = findDimension(source, dimensions)
    if (read === undefined) throw unknown(source)
    return read
  })
  const [only] = readers
  if (only !== undefined && readers.length === 1) return only
  return call => {
    for (const read of readers) {
      const value = present(read(call))
      if (value !== undefined) return value
    }
    return undefined
  }
}

function unknown(name: string): DianaError {
  return new DianaError(
    'BAD_RULES',
    `nothing is known as "${name}": name a dimension such as ip or header:x-account-id, or define it under identify`,
  )
}

function addressOrAbsent(address: Dimension): KeyReader {
  return call => {
    const text = address.read(call, '')
    return text === undefined ? ABSENT : BY_ADDRESS + text
  }
}

/** Returns a value as part of a key; undefined if it is missing or blank. */
function part(value: unknown): string | undefined {
  const text = present(value)
  if (text === undefined) return undefined
  if (text.length > MAX_VALUE) return DIGESTED + digest(text)
  return text.charCodeAt(0) < FIRST_PLAIN ? ESCAPED + text : text
}

/** Returns the digest of a text as UTF-16, for UTF-8 has one spelling for all lone surrogates. */
function digest(value: string): string {
  return nodeCrypto().hash('sha256', Buffer.from(value, 'utf16le'), 'base64url')
}

/** Returns the value as text; undefined if it is missing or blank. */
export function present(value: unknown): string | undefined {
  if (typeof value !== 'string') {
    // an account id is a number in many programs
    return typeof value === 'number' || typeof value === 'bigint' ? String(value) : undefined
  }
  const code = value.charCodeAt(0)
  if (code > FIRST_PLAIN && code < FIRST_UNUSUAL) return value
  return value.trim() === '' ? undefined : value
}

/** One part of a caller's key: a value, a value's digest, an address, or a marker for a missing value. */
export interface KeyPart {
  readonly countedBy: 'value' | 'digest' | 'address' | 'absence'
  readonly value: string
}

/** Reads the key of a rule that counts by one dimension. */
export function describePart(key: string): KeyPart {
  const rest = key.slice(1)
  if (key.startsWith(BY_ADDRESS)) return { countedBy: 'address', value: rest }
  if (key.startsWith(DIGESTED)) return { countedBy: 'digest', value: rest }
  if (key.startsWith(ABSENT)) return { countedBy: 'absence', value: '' }
  return { countedBy: 'value', value: key.startsWith(ESCAPED) ? rest : key }
}
