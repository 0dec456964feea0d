import { clfTime, duration, header, host, peer, request, skip, status, user } from './fields.ts'
import { type LineReader, type LogFormat, readsMost } from './format.ts'
import { type Template, templateReader } from './template.ts'

const common: Template['parts'] = [peer, ' ', skip, ' ', user, ' [', clfTime, '] "', request, '" ', status, ' ']
const combined: Template['parts'] = [...common, skip, ' "', header('referer'), '" "', header('user-agent'), '"']

function templateFormat(name: string, parts: Template['parts'], time: LineReader['time'] = 'end'): LogFormat {
  const reader = templateReader({ format: name, parts, time })
  return { name, recognize: lines => (readsMost(reader, lines) ? reader : undefined) }
}

/** Traefik's own, with the duration of the request at the end. */
export const traefikFormat: LogFormat = templateFormat(
  'traefik',
  [...combined, ' ', skip, ' "', skip, '" "', skip, '" ', duration(1000), 'ms'],
  'start',
)

/** nginx's combined with `$request_time` behind it, as many write it. */
export const combinedTimeFormat: LogFormat = onlyWithDuration(
  templateReader({ format: 'combined with $request_time', parts: [...combined, ' ', duration(1e6), ''], time: 'end' }),
)

function onlyWithDuration(reader: LineReader): LogFormat {
  const isNumber = (line: string): boolean => /" \d+\.\d{3}$/.test(line)
  return {
    name: reader.format,
    recognize: lines => (lines.every(isNumber) && readsMost(reader, lines) ? reader : undefined),
  }
}

/** The format `main` of nginx's packages: combined with X-Forwarded-For behind it. */
export const forwardedFormat: LogFormat = templateFormat('combined with X-Forwarded-For', [
  ...combined.slice(0, -1),
  '" "',
  header('x-forwarded-for'),
  '"',
])

export const combinedFormat: LogFormat = templateFormat('combined', combined)
export const vhostFormat: LogFormat = vhost()
export const commonFormat: LogFormat = templateFormat('common', [...common, skip])

/** Returns the format that begins with a host: `example.com:443 203.0.113.9 - - […` */
function vhost(): LogFormat {
  const withoutPort = {
    ...host,
    write: (entry: Parameters<typeof host.write>[0], text: string) => host.write(entry, text.replace(/:\d+$/, '')),
  }
  const reader = templateReader({ format: 'vhost combined', parts: [withoutPort, ' ', ...combined], time: 'start' })
  const begins = /^\S+ \S+ \S+ \S+ \[\d\d\//
  return {
    name: 'vhost combined',
    recognize: lines =>
      lines.some(line => begins.test(line) && !/^\S+ \S+ \S+ \[/.test(line)) && readsMost(reader, lines)
        ? reader
        : undefined,
  }
}
