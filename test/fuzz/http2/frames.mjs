// Frames of HTTP/2 as text with one character per byte (latin1), so that they fit into a replay file.

export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'

export const types = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
  altSvc: 10,
  origin: 12,
  priorityUpdate: 16,
}

export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 }

/** A number of so many bytes, the highest first. */
export const number = (value, bytes = 4) =>
  Array.from({ length: bytes }, (_, at) => String.fromCharCode(Math.floor(value / 256 ** (bytes - 1 - at)) % 256)).join(
    '',
  )

/** One frame; its type is a name or a number. */
export const frame = (type, flag, stream, payload = '') =>
  number(payload.length, 3) + number(types[type] ?? type, 1) + number(flag, 1) + number(stream) + payload

export const settings = pairs => pairs.map(([id, value]) => number(id, 2) + number(value)).join('')

/** An integer of HPACK with a prefix of so many bits (RFC 7541, section 5.1). */
export function integer(value, prefixBits, pattern = 0) {
  const most = 2 ** prefixBits - 1
  if (value < most) return number(pattern | value, 1)
  let rest = value - most
  let text = number(pattern | most, 1)
  while (rest >= 128) {
    text += number((rest % 128) + 128, 1)
    rest = Math.floor(rest / 128)
  }
  return text + number(rest, 1)
}

const string = text => integer(text.length, 7) + text

/** A field of a header block: a literal that is not indexed, or one that enters the dynamic table. */
export const field = (name, value, isIndexed = false) => (isIndexed ? '\x40' : '\x00') + string(name) + string(value)
