import type { LineReader, LogEntry } from './format.ts'
import { headersOf, momentOf, parseObject, textAt, valueAt } from './json.ts'

/** The names of durations that a map may have, with their units. */
const durations: Readonly<Record<string, number>> = { s: 1e6, seconds: 1e6, ms: 1000, us: 1, ns: 0.001 }
const simple = ['time', 'ip', 'method', 'path', 'query', 'status', 'host', 'user'] as const

/** A mistake in what was written behind `--fields`. */
export class FieldMapError extends Error {}

/**
 * Returns a reader for any JSON lines: `time=ts,ip=client.addr,method=req.method,path=req.url,status=code,duration.ms=took` and
 * `header:x-account-id=account`, `attribute:plan=user.plan`, `headers=req.headers`, `time.end=ts`.
 */
export function fieldMapReader(text: string): LineReader {
  const map = new Map<string, string>()
  for (const pair of text.split(',')) {
    const equals = pair.indexOf('=')
    const [name, path] = [pair.slice(0, equals).trim(), pair.slice(equals + 1).trim()]
    if (equals < 1 || path === '') throw new FieldMapError(`"${pair}" is not NAME=FIELD, such as time=ts`)
    if (!isName(name)) throw new FieldMapError(`"${name}" is not a name that a field can have; known are ${names}`)
    map.set(name, path)
  }
  const timePath = map.get('time') ?? map.get('time.start') ?? map.get('time.end')
  const path = map.get('path')
  if (timePath === undefined || path === undefined)
    throw new FieldMapError('time and path are needed, such as time=ts,path=url')
  const rest = [...map].filter(([name]) => name.includes(':'))
  const [durationName, durationPath] = [...map].find(([name]) => name.startsWith('duration')) ?? []
  const unitUs = durations[durationName?.split('.')[1] ?? 'ms']!
  const fields = new Set([...map.keys()].map(name => (name.startsWith('duration') ? 'duration' : name)))
  const read = (line: string, entry: LogEntry): boolean | undefined => {
    const object = parseObject(line)
    if (object === undefined) return false
    entry.at = momentOf(valueAt(object, timePath))
    entry.target = textAt(object, path) ?? ''
    const of = (name: (typeof simple)[number]): string | undefined =>
      map.has(name) ? textAt(object, map.get(name)!) : undefined
    entry.peer = of('ip')
    entry.method = of('method')?.toUpperCase() ?? 'GET'
    entry.host = of('host')
    entry.user = of('user')
    entry.status = Number(of('status')) || undefined
    const query = of('query')
    if (query !== undefined) entry.target += query.startsWith('?') ? query : `?${query}`
    if (durationPath !== undefined) entry.durationUs = Math.round(Number(valueAt(object, durationPath)) * unitUs)
    if (map.has('headers')) entry.headers = headersOf(valueAt(object, map.get('headers')!))
    for (const [name, at] of rest) put(entry, name, textAt(object, at))
    return entry.at >= 0 && entry.target !== ''
  }
  return { format: 'json by --fields', fields, tickUs: 1, time: map.has('time.end') ? 'end' : 'start', read }
}

function put(entry: LogEntry, name: string, value: string | undefined): void {
  if (value === undefined) return
  const colon = name.indexOf(':')
  const rest = name.slice(colon + 1)
  if (name.startsWith('header:')) {
    entry.headers ??= {}
    entry.headers[rest.toLowerCase()] = value
  } else {
    entry.attributes ??= {}
    entry.attributes[rest] = value
  }
}

const names = `${simple.join(', ')}, time.end, duration.ms, headers, header:NAME, attribute:NAME`

function isName(name: string): boolean {
  if ((simple as readonly string[]).includes(name) || name === 'headers') return true
  return /^(?:time\.(?:start|end)|duration(?:\.(?:s|seconds|ms|us|ns))?|(?:header|attribute):.+)$/.test(name)
}
