const months: Readonly<Record<string, number>> = {
  ...{ Jan: 0, Feb: 1, Mar: 2, Apr: 3, May: 4, Jun: 5, Jul: 6, Aug: 7, Sep: 8, Oct: 9, Nov: 10, Dec: 11 },
}

let clfText = ''
let clfUs = Number.NaN

/** Reads `10/Oct/2026:13:55:36 +0200`, with fractions of a second as HAProxy writes them; NaN if it is none. */
export function parseClfTime(text: string): number {
  // lines of one second follow each other
  if (text === clfText) return clfUs
  const parts = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4}):(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?: ([+-])(\d\d)(\d\d))?$/.exec(
    text,
  )
  if (parts === null) return Number.NaN
  const [, day, name, year, hour, minute, second, fraction = '', sign = '+', zoneHours = '00', zoneMinutes = '00'] =
    parts
  const month = months[name!]
  if (month === undefined) return Number.NaN
  const ms = Date.UTC(Number(year), month, Number(day), Number(hour), Number(minute), Number(second))
  const zone = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000 * (sign === '-' ? -1 : 1)
  clfText = text
  clfUs = (ms - zone) * 1000 + Number(fraction.padEnd(6, '0'))
  return clfUs
}

/** Reads such a time from a part of a line. */
export function parseClfTimeAt(line: string, from: number, to: number): number {
  return clfText.length === to - from && line.startsWith(clfText, from) ? clfUs : parseClfTime(line.slice(from, to))
}

let isoText = ''
let isoUs = Number.NaN

/** Reads `2026-10-10T13:55:36.123456Z` or with an offset; without one it is UTC. NaN if it is none. */
export function parseIsoTime(text: string): number {
  // the second and the zone are cached, fractions are not
  const end = fractionEnd(text)
  const fraction = text.charCodeAt(19) === 0x2e || text.charCodeAt(19) === 0x2c ? text.slice(20, end) : ''
  const rest = text.slice(end)
  const key = `${text.slice(0, 19)}${rest}`
  if (key !== isoText) {
    if (!/^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:Z|[+-]\d\d:?\d\d)?$/.test(key)) return Number.NaN
    const zone = rest === '' ? 'Z' : rest.length === 5 ? `${rest.slice(0, 3)}:${rest.slice(3)}` : rest
    isoUs = Date.parse(`${text.slice(0, 10)}T${text.slice(11, 19)}${zone}`) * 1000
    isoText = key
  }
  if (fraction === '') return isoUs
  return /^\d{1,9}$/.test(fraction) ? isoUs + Math.floor(Number(fraction.slice(0, 6).padEnd(6, '0'))) : Number.NaN
}

function fractionEnd(text: string): number {
  let at = 19
  if (text.charCodeAt(at) !== 0x2e && text.charCodeAt(at) !== 0x2c) return at
  at++
  while (at < text.length && text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++
  return at
}

/** Reads seconds since 1970 with up to six decimals, without a rounding error; NaN if it is none. */
export function parseSeconds(text: string): number {
  const parts = /^(\d{1,11})(?:\.(\d{1,9}))?$/.exec(text)
  if (parts === null) return Number.NaN
  return Number(parts[1]) * 1e6 + Number((parts[2] ?? '').slice(0, 6).padEnd(6, '0'))
}

/** Returns a duration in microseconds, from a number of units; NaN for a hyphen and for text that is no number. */
export function parseDurationUs(text: string, unitUs: number): number {
  if (!/^\d{1,17}(?:\.\d{1,9})?$/.test(text)) return Number.NaN
  return Math.round(Number(text) * unitUs)
}
