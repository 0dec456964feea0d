import { duration, header, isoTimeUs, peerWithPort, request, skip, status } from './fields.ts'
import { type LineReader, type LogFormat, readsMost } from './format.ts'
import { templateReader } from './template.ts'

const reader = templateReader({
  format: 'alb',
  parts: [
    ...[
      skip,
      ' ',
      skip,
      ' ',
      skip,
      ' ',
      peerWithPort,
      ' ',
      skip,
      ' ',
      skip,
      ' ',
      duration(1e6),
      ' ',
      skip,
      ' ',
      status,
      ' ',
    ],
    ...[
      skip,
      ' ',
      skip,
      ' ',
      skip,
      ' "',
      request,
      '" "',
      header('user-agent'),
      '" ',
      skip,
      ' ',
      skip,
      ' ',
      skip,
      ' "',
      skip,
    ],
    ...['" "', skip, '" "', skip, '" ', skip, ' ', isoTimeUs, ' '],
  ],
  time: 'start',
})

/** Application Load Balancer of AWS: the target is absolute, and the moment is that at which the request was received. */
export const albFormat: LogFormat = {
  name: 'alb',
  recognize: lines => {
    const isLine = (line: string): boolean => /^(?:https?|h2|grpcs|wss?) \d{4}-\d\d-\d\dT/.test(line)
    return lines.some(isLine) && readsMost(own, lines) ? own : undefined
  },
}

const own = withHost(reader)

function withHost(inner: LineReader): LineReader {
  return {
    ...inner,
    fields: new Set([...inner.fields, 'host']),
    want: isWanted => withHost(inner.want!(isWanted)),
    read(line, entry) {
      const isRead = inner.read(line, entry)
      if (isRead) entry.host = /^\w+:\/\/([^/?#]*)/.exec(entry.target)?.[1]?.replace(/:\d+$/, '')
      return isRead
    },
  }
}
