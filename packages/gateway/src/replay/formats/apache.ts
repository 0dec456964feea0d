import * as known from './fields.ts'
import type { LineReader } from './format.ts'
import { tidy } from './nginx.ts'
import { templateReader } from './template.ts'

const letters: Readonly<Record<string, known.Field>> = {
  ...{
    h: known.peer,
    a: known.peer,
    u: known.user,
    r: known.request,
    m: known.method,
    U: known.target,
    q: known.query,
  },
  ...{ s: known.status, v: known.host, V: known.host, D: known.duration(1), T: known.duration(1e6), t: known.clfTime },
}

const times: Readonly<Record<string, known.Field>> = {
  ...{ sec: known.secondsSinceEpoch, msec: known.millisecondsSinceEpoch, usec: known.microsecondsSinceEpoch },
  ...{ msec_frac: known.fraction(1000), usec_frac: known.fraction(1) },
}

const units: Readonly<Record<string, number>> = { s: 1e6, ms: 1000, us: 1 }

function fieldOf(argument: string | undefined, letter: string): known.Field {
  if (argument === undefined) return letters[letter] ?? known.skip
  if (letter === 'i') return argument.toLowerCase() === 'host' ? known.host : known.header(argument)
  if (letter === 'C') return known.cookie(argument)
  if (letter === 'a' || letter === 'h') return known.peer
  if (letter === 'T') return known.duration(units[argument] ?? 1e6)
  if (letter !== 't') return known.skip
  const time = times[argument.replace(/^(?:begin|end):/, '')]
  if (time !== undefined) return time
  if (/^(?:begin:)?%Y-%m-%dT%(?:T|H:%M:%S)(?:%z)?$/.test(argument)) return known.isoTime
  throw new Error(`the time format %{${argument}}t is not known; use %t, or %{usec}t for exact times`)
}

/** Returns a reader for Apache's `LogFormat`: `%h %l %u %t "%r" %>s %b`; throws if it cannot be read back. */
export function apacheReader(format: string): LineReader {
  const text = format.replaceAll('\\"', '"')
  const parts: (string | known.Field)[] = []
  let at = 0
  let time: LineReader['time'] = 'start'
  for (const match of text.matchAll(/%[!\d,]*[<>]?(?:\{([^}]*)\})?([a-zA-Z%^]{1,3}?)(?=[^a-zA-Z]|$|%)/g)) {
    const [all, argument, letter = ''] = match
    const before = text.slice(at, match.index)
    if (letter === 't' && argument === undefined) {
      // Apache writes it in brackets
      parts.push(`${before}[`, known.clfTime, ']')
    } else parts.push(before, letter === '%' ? '%' : fieldOf(argument, letter))
    if (letter === 't' && argument?.startsWith('end:')) time = 'end'
    at = match.index + all.length
  }
  parts.push(text.slice(at))
  return templateReader({ format: 'apache', parts: joined(tidy(parts)), time })
}

/** Texts that follow each other as one. */
function joined(parts: readonly (string | known.Field)[]): (string | known.Field)[] {
  const all: (string | known.Field)[] = []
  for (const part of parts) {
    const last = all.at(-1)
    if (typeof part === 'string' && typeof last === 'string') all[all.length - 1] = last + part
    else all.push(part)
  }
  return all
}
