import { duration, header, host, isoTimeMs, request, skip, status } from './fields.ts'
import { type LineReader, type LogEntry, type LogFormat, readsMost } from './format.ts'
import { templateReader } from './template.ts'

const begin = ['[', isoTimeMs, '] "', request, '" ', status, ' ']
const end = [
  duration(1000),
  ' ',
  skip,
  ' "',
  header('x-forwarded-for'),
  '" "',
  header('user-agent'),
  '" "',
  skip,
  '" "',
  host,
  '"',
]

/**
 * Returns the reader of Envoy's default access log. Envoy adds the address of the connection to X-Forwarded-For, behind those of
 * proxies before it.
 */
function envoyReader(parts: readonly (typeof end)[number][]): LineReader {
  return withPeer(templateReader({ format: 'envoy', parts: [...begin, ...parts, ...end], time: 'start' }))
}

function withPeer(reader: LineReader): LineReader {
  const read = (line: string, entry: LogEntry): boolean | undefined => {
    const isRead = reader.read(line, entry)
    const addresses = entry.headers?.['x-forwarded-for']
    if (isRead && addresses !== undefined) takePeer(entry, addresses)
    return isRead
  }
  return {
    ...reader,
    fields: new Set([...reader.fields, 'ip']),
    want: isWanted => withPeer(reader.want!(isWanted)),
    read,
  }
}

function takePeer(entry: LogEntry, addresses: string): void {
  const comma = addresses.lastIndexOf(',')
  entry.peer = addresses.slice(comma + 1).trim()
  if (comma < 0) delete entry.headers!['x-forwarded-for']
  else entry.headers!['x-forwarded-for'] = addresses.slice(0, comma)
}

/** Since version 1.9 there are details and a reason of failures between the flags and the bytes. */
const readers = [
  envoyReader([skip, ' ', skip, ' ', skip, ' "', skip, '" ', skip, ' ', skip, ' ']),
  envoyReader([skip, ' ', skip, ' ', skip, ' ']),
]

export const envoyFormat: LogFormat = {
  name: 'envoy',
  recognize: lines => readers.find(reader => readsMost(reader, lines)),
}
