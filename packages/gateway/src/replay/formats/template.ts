import { type Field, skip } from './fields.ts'
import type { LineReader, LogEntry } from './format.ts'

/** A text format: fields and the texts between them, in turn; it begins with a text, which may be empty. */
export interface Template {
  readonly format: string
  readonly parts: readonly (string | Field)[]
  readonly time: LineReader['time']
}

interface Step {
  readonly field: Field
  /** The text that ends the field; empty for the last one. */
  readonly end: string
  /** True if it stands between quotes, where a quote has a backslash before it. */
  readonly isQuoted: boolean
  /** True if no rule asks for it. */
  readonly isSkipped: boolean
}

/** Makes a reader of a template; throws if two fields have nothing between them. */
export function templateReader({ format, parts, time }: Template): LineReader {
  const steps: Step[] = []
  let prefix = ''
  let before = ''
  parts.forEach((part, index) => {
    if (typeof part === 'string') {
      if (steps.length === 0) prefix += part
      before = part
      return
    }
    const next = parts[index + 1]
    if (typeof next === 'object') throw new Error('two fields follow each other without a sign between them')
    const end = next ?? ''
    steps.push({ field: part, end, isQuoted: before.endsWith('"') && end.startsWith('"'), isSkipped: part === skip })
    before = ''
  })
  const fields = new Set<string>()
  let tickUs = Number.POSITIVE_INFINITY
  for (const { field } of steps) {
    if (field.name !== undefined) fields.add(field.name)
    if (field.tickUs !== undefined && field.tickUs < tickUs) tickUs = field.tickUs
  }
  if (tickUs === Number.POSITIVE_INFINITY) throw new Error('it has no time of the request')
  if (!fields.has('path')) throw new Error('it has no path of the request')
  const readerBy = (some: readonly Step[]): LineReader => ({
    ...{ format, fields, tickUs, time },
    want: wanted => readerBy(steps.map(step => ({ ...step, isSkipped: isSkipped(step.field, wanted) }))),
    read: (line, entry) => readSteps(some, prefix, line, entry),
  })
  return readerBy(steps)
}

function isSkipped(field: Field, isWanted: (name: string) => boolean): boolean {
  const { name = '' } = field
  return field === skip || (/^(?:header:|cookie:|user$|host$)/.test(name) && !isWanted(name))
}

function readSteps(steps: readonly Step[], prefix: string, line: string, entry: LogEntry): boolean {
  if (!line.startsWith(prefix)) return false
  let at = prefix.length
  for (let i = 0; i < steps.length; i++) {
    const { field, end, isQuoted, isSkipped } = steps[i]!
    let to = end === '' ? line.length : line.indexOf(end, at)
    if (isQuoted) while (to > at && isEscaped(line, at, to)) to = line.indexOf(end, to + 1)
    if (to < 0) return false
    if (!isSkipped && !writeField(field, entry, line, at, to, isQuoted)) return false
    at = to + end.length
  }
  return true
}

function writeField(field: Field, entry: LogEntry, line: string, from: number, to: number, isQuoted: boolean): boolean {
  if (isQuoted) {
    const backslash = line.indexOf('\\', from)
    if (backslash >= 0 && backslash < to) return field.write(entry, unescapeText(line.slice(from, to)))
  }
  return field.writeAt === undefined ? field.write(entry, line.slice(from, to)) : field.writeAt(entry, line, from, to)
}

/** True if an odd number of backslashes stands before a sign. */
function isEscaped(line: string, from: number, to: number): boolean {
  let at = to - 1
  while (at >= from && line.charCodeAt(at) === 0x5c) at--
  return (to - at) % 2 === 0
}

const controls: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', v: '\v', b: '\b' }

/** Reads what Apache and nginx have escaped: `\x22`, `\"`, `\\`, `\n`. */
export function unescapeText(text: string): string {
  return text.replace(/\\(?:x([0-9A-Fa-f]{2})|(.))/g, (_all, hex: string | undefined, sign: string) => {
    return hex === undefined ? (controls[sign] ?? sign) : String.fromCharCode(Number.parseInt(hex, 16))
  })
}
