import { isUtf8 } from 'node:buffer'
import type { BodyField, CallBody } from '../call.ts'
import { foldedName, type JsonPath, jsonFields } from './reading/json-numbers.ts'

/** The part of a request's body that is read. */
export const PREFIX_BYTES = 65_536

/** The known bytes of a body. */
export interface BodyPart {
  /** True if there are no more. */
  readonly isWhole: boolean
  /** The size of all of it, if that is known. */
  readonly bytes: number | undefined
  /** Its content type. */
  readonly type?: string | undefined
}

/** A field that is not there. */
const nothing: BodyField = { number: undefined, mayLack: true, items: 0 }
/** A field that may be there, with any value. */
const anything: BodyField = { number: Number.NaN, mayLack: true, items: Number.NaN }

/** Returns a body that cannot be read, as one that is compressed or did not come in time. */
export function unreadableBody(bytes: number | undefined): CallBody {
  return bodyOf(bytes, paths => paths.map(() => anything))
}

export const emptyBody: CallBody = bodyOf(0, paths => paths.map(() => nothing))

/** Returns a body by its first bytes. If there are more, a field may be behind them, or there a second time: nothing of it is believed. */
export function bodyOfPrefix(prefix: Buffer, { isWhole, bytes, type }: BodyPart): CallBody {
  if (isWhole && prefix.length === 0) return emptyBody
  if (!isWhole || !isUtf8(prefix) || hasOtherReading(type, prefix)) {
    return unreadableBody(isWhole ? prefix.length : bytes)
  }
  return bodyOf(prefix.length, paths =>
    jsonFields(prefix, paths).map(field => (field.end === 'whole' ? field : anything)),
  )
}

/** Returns a body that the application's framework has parsed: an object, or the text or bytes of one. */
export function bodyOfValue(value: unknown, bytes: number | undefined): CallBody | undefined {
  if (typeof value === 'string') return bodyOfPrefix(Buffer.from(value.slice(0, PREFIX_BYTES)), partOf(value, bytes))
  if (value instanceof Uint8Array) {
    const buffer = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, PREFIX_BYTES))
    return bodyOfPrefix(buffer, partOf(value, bytes ?? value.byteLength))
  }
  if (typeof value !== 'object' || value === null) return undefined
  return bodyOf(bytes, paths =>
    paths.map(path => {
      const found: ParsedField = { number: undefined, mayLack: false, items: 0 }
      findIn(value, path, found)
      return found
    }),
  )
}

function bodyOf(
  bytes: number | undefined,
  fields: (paths: readonly JsonPath[]) => readonly BodyField[],
): CallBody & Required<Pick<CallBody, 'fields'>> {
  return { bytes, number: path => fields([path])[0]!.number, fields }
}

function partOf({ length }: { readonly length: number }, bytes: number | undefined): BodyPart {
  return { isWhole: length <= PREFIX_BYTES, bytes }
}

const knownCharsets: readonly string[] = ['utf-8', 'utf8', 'us-ascii', 'ascii']

/** True if a service that follows the content type may read something else in a body than JSON in UTF-8. */
function hasOtherReading(type: string | undefined, prefix: Buffer): boolean {
  if (type === undefined) return false
  const lower = type.toLowerCase()
  const charsets = [...lower.matchAll(/charset[^=;]*=\s*["']?([^\s;"',]*)/g)]
  if (charsets.some(([, charset]) => !knownCharsets.includes(charset!))) return true
  // many clients send JSON with the content type of a form; without = no field of a form has a value
  if (lower.includes('urlencoded')) return prefix.includes('=')
  return lower.includes('multipart')
}

type ParsedField = { -readonly [Name in keyof BodyField]: BodyField[Name] }

/** As `jsonFields` finds it: what the application calls may ignore the case of names. */
function findIn(value: unknown, path: JsonPath, found: ParsedField): void {
  const [name, ...rest] = path
  if (name === undefined) {
    noteValue(value, found)
    return
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    found.mayLack = true
    return
  }
  if (!Object.hasOwn(value, name)) found.mayLack = true
  const folded = foldedName(name)
  for (const [key, one] of Object.entries(value)) if (foldedName(key) === folded) findIn(one, rest, found)
}

function noteValue(value: unknown, found: ParsedField): void {
  if (value === undefined || value === null) {
    found.mayLack = true
    return
  }
  const number = typeof value === 'number' ? value : Number.NaN
  if (number < 1) found.mayLack = true
  found.number = found.number === undefined ? number : Math.max(found.number, number)
  if (!Array.isArray(value)) return
  const items = value.filter(item => typeof item === 'string' || (typeof item === 'object' && item !== null))
  found.items = Math.max(found.items, items.length)
}
