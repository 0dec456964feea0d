import { peerWithPort, request, status } from './fields.ts'
import { type LineReader, type LogEntry, type LogFormat, readsMost } from './format.ts'
import { parseClfTime } from './times.ts'

/**
 * HAProxy's `option httplog`, with or without what syslog writes before it:
 * `203.0.113.9:40212 [10/Oct/2026:13:55:36.655] web app/s1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1"`.
 * The moment is that of the request, in the zone of the server, which the log does not say.
 */
const line =
  /(?:^|[ :])([\da-fA-F.:]+:\d+) \[(\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d\.\d{3})\] \S+ \S+ (-?\d+\/-?\d+\/-?\d+\/-?\d+\/\+?-?\d+) (-?\d+) \+?\d+ \S+ \S+ \S{4} \S+ \S+ (?:\{.*\} )?"(.*)"?$/

function read(text: string, entry: LogEntry): boolean | undefined {
  const found = line.exec(text)
  if (found === null) return isNotice(text) ? undefined : false
  entry.at = parseClfTime(found[2]!)
  // TR/Tw/Tc/Tr/Ta: how long the request took to come, to wait, to connect, to be answered, and all of it
  const times = found[3]!.split('/').map(Number)
  entry.durationUs = Math.max(0, times[4]!) * 1000
  status.write(entry, found[4]!)
  // it escapes signs by their code
  const asked = found[5]!
    .replace(/"$/, '')
    .replace(/#([0-9A-F]{2})/g, (_all, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return entry.at >= 0 && peerWithPort.write(entry, found[1]!) && request.write(entry, asked)
}

/** True if a line is one that HAProxy writes of itself: `Proxy web started.` */
function isNotice(text: string): boolean {
  return /(?:Proxy|Server|backend|frontend) \S+ (?:started|stopped|is )|^\[?(?:NOTICE|WARNING)/.test(text)
}

const reader: LineReader = {
  ...{ format: 'haproxy', tickUs: 1000, time: 'start', read },
  fields: new Set(['ip', 'path', 'method', 'status', 'duration']),
}

export const haproxyFormat: LogFormat = {
  name: 'haproxy',
  recognize: lines => (readsMost(reader, lines) ? reader : undefined),
}
