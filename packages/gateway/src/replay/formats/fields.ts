import type { LogEntry } from './format.ts'
import { parseClfTime, parseClfTimeAt, parseDurationUs, parseIsoTime, parseSeconds } from './times.ts'

/** Puts the text of a field into an entry; false if it cannot be. */
export type FieldWriter = (entry: LogEntry, text: string) => boolean

/** A field of a text format: its meaning and its form. */
export interface Field {
  /** As rules name it; undefined if it only helps to read the line. */
  readonly name?: string | undefined
  /** The precision of a written moment, in microseconds. */
  readonly tickUs?: number | undefined
  readonly write: FieldWriter
  /** For speed, the same for a part of a line, without cutting it out. */
  readonly writeAt?: ((entry: LogEntry, line: string, from: number, to: number) => boolean) | undefined
}

const isMissing = (text: string): boolean => text === '-' || text === ''

export const skip: Field = { write: () => true }

export const peer: Field = {
  name: 'ip',
  write: (entry, text) => {
    entry.peer = text === '-' ? undefined : text
    return text.length <= 64
  },
}

/** An address with a port, as load balancers write it. */
export const peerWithPort: Field = {
  name: 'ip',
  write: (entry, text) => peer.write(entry, text.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')),
}

export const user: Field = {
  name: 'user',
  write: (entry, text) => {
    if (!isMissing(text)) entry.user = text
    return true
  },
}

export const host: Field = {
  name: 'host',
  write: (entry, text) => {
    if (!isMissing(text)) entry.host = text
    return true
  },
}

export const method: Field = {
  name: 'method',
  write: (entry, text) => {
    entry.method = text
    return /^[A-Z][A-Z_-]{0,30}$/.test(text)
  },
}

export const target: Field = {
  name: 'path',
  write: (entry, text) => {
    entry.target = text
    return text !== ''
  },
}

/** A query behind a path that stands before it; with or without its question mark. */
export const query: Field = {
  name: 'path',
  write: (entry, text) => {
    if (!isMissing(text)) entry.target += text.charCodeAt(0) === 0x3f ? text : `?${text}`
    return true
  },
}

/** `GET /path HTTP/1.1` */
export const request: Field = {
  name: 'path',
  write: (entry, text) => {
    const first = text.indexOf(' ')
    const last = text.lastIndexOf(' ')
    // lines that are no requests are logged as well
    if (first <= 0) return false
    const end = last > first && text.startsWith('HTTP/', last + 1) ? last : text.length
    entry.method = text.slice(0, first)
    entry.target = text.slice(first + 1, end)
    return isMethod(text, 0, first) && end > first + 1
  },
  writeAt: (entry, line, from, to) => {
    const first = line.indexOf(' ', from)
    if (first <= from || first >= to) return false
    // most lines end with the protocol, whose last eight signs are HTTP/1.1
    const isVersioned = line.charCodeAt(to - 9) === 0x20 && line.startsWith('HTTP/', to - 8)
    if (!isVersioned) return request.write(entry, line.slice(from, to))
    entry.method = methodOf(line, from, first)
    entry.target = line.slice(first + 1, to - 9)
    return to - 9 > first + 1 && isMethod(line, from, first)
  },
}

const usualMethods = ['GET', 'POST', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']

/** Reads a method; returns the same text each time, if it is a usual one. */
function methodOf(line: string, from: number, to: number): string {
  for (const one of usualMethods) if (one.length === to - from && line.startsWith(one, from)) return one
  return line.slice(from, to)
}

function isMethod(text: string, from: number, end: number): boolean {
  for (let at = from; at < end; at++) {
    const code = text.charCodeAt(at)
    if ((code < 0x41 || code > 0x5a) && code !== 0x2d && code !== 0x5f) return false
  }
  return true
}

export const status: Field = {
  name: 'status',
  write: (entry, text) => {
    const value = Number(text)
    if (value >= 100 && value <= 999) entry.status = value
    return isMissing(text) || (value >= 0 && value <= 999)
  },
  writeAt: (entry, line, from, to) => {
    const value =
      (line.charCodeAt(from) - 0x30) * 100 + (line.charCodeAt(from + 1) - 0x30) * 10 + line.charCodeAt(from + 2) - 0x30
    if (to - from !== 3 || !(value >= 100 && value <= 999)) return status.write(entry, line.slice(from, to))
    entry.status = value
    return true
  },
}

export function header(name: string): Field {
  const lower = name.toLowerCase()
  return {
    name: `header:${lower}`,
    write: (entry, text) => {
      if (isMissing(text)) return true
      entry.headers ??= {}
      entry.headers[lower] = text
      return true
    },
  }
}

export function cookie(name: string): Field {
  return {
    name: `cookie:${name}`,
    write: (entry, text) => {
      if (isMissing(text)) return true
      entry.headers ??= {}
      const before = entry.headers.cookie
      entry.headers.cookie = `${before === undefined ? '' : `${before}; `}${name}=${text}`
      return true
    },
  }
}

const moment = (tickUs: number, parse: (text: string) => number): Field => ({
  tickUs,
  write: (entry, text) => {
    entry.at = parse(text)
    return entry.at >= 0
  },
})

export const clfTime: Field = {
  ...moment(1_000_000, parseClfTime),
  writeAt: (entry, line, from, to) => {
    entry.at = parseClfTimeAt(line, from, to)
    return entry.at >= 0
  },
}
export const clfTimeMs: Field = moment(1000, parseClfTime)
export const isoTime: Field = moment(1_000_000, parseIsoTime)
export const isoTimeMs: Field = moment(1000, parseIsoTime)
export const isoTimeUs: Field = moment(1, parseIsoTime)
export const secondsMs: Field = moment(1000, parseSeconds)
export const secondsSinceEpoch: Field = moment(1_000_000, parseSeconds)
export const millisecondsSinceEpoch: Field = moment(1000, text => parseDurationUs(text, 1000))
export const microsecondsSinceEpoch: Field = moment(1, text => parseDurationUs(text, 1))

/** Returns a part of a second that stands behind its seconds. */
export function fraction(unitUs: number): Field {
  return {
    tickUs: unitUs,
    write: (entry, text) => {
      entry.at += parseDurationUs(text, unitUs)
      return entry.at >= 0
    },
  }
}

export function duration(unitUs: number): Field {
  return {
    name: 'duration',
    write: (entry, text) => {
      entry.durationUs = parseDurationUs(text, unitUs)
      return true
    },
  }
}
