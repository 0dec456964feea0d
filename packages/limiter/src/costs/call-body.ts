import type { CallBody } from '../call.ts'
import { type JsonPath, jsonNumbers, pathTree } from './reading/json-numbers.ts'

/** How much of a request's body is read. */
export const PREFIX_BYTES = 65_536

/** A body that cannot be read, as one that is compressed or did not come in time. */
export function unreadableBody(bytes: number | undefined): CallBody {
  return { bytes, number: () => Number.NaN }
}

export const emptyBody: CallBody = { bytes: 0, number: () => undefined }

/** A body by its first bytes; `isWhole` if there are no more. */
export function bodyOfPrefix(
  prefix: Buffer,
  { isWhole, bytes }: { isWhole: boolean; bytes: number | undefined },
): CallBody {
  return {
    bytes: isWhole ? prefix.length : bytes,
    number(path) {
      if (isWhole && prefix.length === 0) return undefined
      const { numbers, end } = jsonNumbers(prefix, pathTree([path]))
      if (end === 'invalid' || (end === 'cut' && isWhole)) return Number.NaN
      // a field that is not in the first bytes may be behind them
      return numbers[0] ?? (isWhole ? undefined : Number.NaN)
    },
  }
}

/** A body that the application's framework has parsed: an object, or the text or bytes of one. */
export function bodyOfValue(value: unknown, bytes: number | undefined): CallBody | undefined {
  if (typeof value === 'string') return bodyOfPrefix(Buffer.from(value.slice(0, PREFIX_BYTES)), partOf(value, bytes))
  if (value instanceof Uint8Array) {
    const buffer = Buffer.from(value.buffer, value.byteOffset, Math.min(value.byteLength, PREFIX_BYTES))
    return bodyOfPrefix(buffer, partOf(value, bytes ?? value.byteLength))
  }
  if (typeof value !== 'object' || value === null) return undefined
  return { bytes, number: path => numberIn(value, path) }
}

function partOf({ length }: { readonly length: number }, bytes: number | undefined) {
  return { isWhole: length <= PREFIX_BYTES, bytes }
}

function numberIn(value: unknown, path: JsonPath): number | undefined {
  let found = value
  for (const name of path) {
    if (typeof found !== 'object' || found === null || Array.isArray(found)) return undefined
    found = Object.hasOwn(found, name) ? (found as Record<string, unknown>)[name] : undefined
  }
  if (found === undefined || found === null) return undefined
  return typeof found === 'number' ? found : Number.NaN
}
