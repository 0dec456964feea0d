import { type LineReader, type LogEntry, type LogFormat, readsMost } from './format.ts'
import { parseDurationUs, parseIsoTime, parseSeconds } from './times.ts'

type Json = Record<string, unknown>

export function parseObject(line: string): Json | undefined {
  // text before it, such as the name of a container
  const begin = line.indexOf('{')
  if (begin < 0) return undefined
  try {
    const value: unknown = JSON.parse(inUtf8(begin === 0 ? line : line.slice(begin)))
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

/** Lines are read byte by byte; JSON is UTF-8. */
function inUtf8(text: string): string {
  return /[\x80-\xff]/.test(text) ? Buffer.from(text, 'latin1').toString('utf8') : text
}

/** Returns the value at `request.remote_ip`, or under a name with a dot in it. */
export function valueAt(object: Json, path: string): unknown {
  if (Object.hasOwn(object, path)) return object[path]
  let value: unknown = object
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Json)[name]
  }
  return value
}

export function textAt(object: Json, path: string): string | undefined {
  const value = valueAt(object, path)
  if (typeof value === 'string') return value === '' || value === '-' ? undefined : value
  if (typeof value === 'number') return String(value)
  // a header that came several times
  return Array.isArray(value) && value.every(one => typeof one === 'string') ? value.join(', ') : undefined
}

/** Returns a moment as logs write them: ISO 8601, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970. */
export function momentOf(value: unknown): number {
  if (typeof value === 'string' && value.length > 18 && value[4] === '-') return parseIsoTime(value)
  const number = Number(value)
  if (!(number > 1e8)) return Number.NaN
  if (number < 1e11) return typeof value === 'string' ? parseSeconds(value) : Math.round(number * 1e6)
  if (number < 1e14) return Math.round(number * 1000)
  return number < 1e17 ? Math.round(number) : Math.floor(number / 1000)
}

/** Makes a format of one JSON object per line. */
export function jsonFormat(
  reader: Omit<LineReader, 'read'> & {
    /** True if a line is of this format. */
    is(object: Json): boolean
    readObject(object: Json, entry: LogEntry): boolean | undefined
  },
): LogFormat {
  const whole: LineReader = {
    ...reader,
    read: (line, entry) => {
      const object = parseObject(line)
      if (object === undefined) return false
      // logs of errors and of the start stand between those of requests
      return reader.is(object) ? reader.readObject(object, entry) : undefined
    },
  }
  return {
    name: reader.format,
    recognize: lines => {
      if (!lines.some(line => line.includes('{'))) return undefined
      return readsMost(whole, lines) ? whole : undefined
    },
  }
}

/** Copies headers of an object whose names may be in any case. */
export function headersOf(value: unknown): Record<string, string> | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const headers: Record<string, string> = {}
  for (const name of Object.keys(value)) {
    const text = textAt(value as Json, name)
    if (text !== undefined) headers[name.toLowerCase()] = text
  }
  return headers
}

export { parseDurationUs }
