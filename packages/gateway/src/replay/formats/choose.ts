import { suggest } from 'diana-limiter/schema'
import { apacheReader } from './apache.ts'
import { fieldMapReader } from './field-map.ts'
import type { LineReader } from './format.ts'
import { formats } from './index.ts'
import { nginxReader } from './nginx.ts'

/** The user's statements about a log. */
export interface FormatChoice {
  /** `auto`, the name of a format, or nginx's or Apache's own words for it. */
  readonly format?: string | undefined
  /** The fields of JSON lines, by what they hold. */
  readonly fields?: string | undefined
}

/** A log that cannot be read, or a format that is not known. */
export class FormatError extends Error {}

/** Chooses the reader for a log that begins with `lines`; throws if there is none. `name` is the log's. */
export function chooseReader(
  { format = 'auto', fields }: FormatChoice,
  lines: readonly string[],
  name: string,
): LineReader {
  if (fields !== undefined) return fieldMapReader(fields)
  try {
    if (format.includes('$')) return nginxReader(format)
    if (format.includes('%')) return apacheReader(format)
  } catch (error) {
    throw new FormatError(`--format cannot be read back: ${(error as Error).message}`)
  }
  if (format !== 'auto') return named(format, lines, name)
  for (const one of formats) {
    const reader = one.recognize(lines)
    if (reader !== undefined) return reader
  }
  const known = formats.map(one => one.name).join(', ')
  throw new FormatError(
    `${name}: its format is not recognized; known are ${known}. Say --format with your log_format or LogFormat, or --fields for JSON. ` +
      `The first line is: ${shown(lines[0] ?? '')}`,
  )
}

function named(format: string, lines: readonly string[], name: string): LineReader {
  const one = formats.find(candidate => candidate.name === format)
  if (one === undefined) {
    const meant = suggest(
      format,
      formats.map(candidate => candidate.name),
    )
    throw new FormatError(`--format ${format} is not known${meant === undefined ? '' : `; did you mean ${meant}?`}`)
  }
  const reader = one.recognize(lines)
  if (reader !== undefined) return reader
  throw new FormatError(`${name} is not a log in the format ${format}; its first line is: ${shown(lines[0] ?? '')}`)
}

/** Returns a line of a log for a person: short and printable. */
export function shown(line: string): string {
  const short = line.length > 160 ? `${line.slice(0, 160)}…` : line
  return short.replace(/[^\x20-\x7e…]/g, '?')
}
