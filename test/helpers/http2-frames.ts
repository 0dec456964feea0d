import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** What every connection of HTTP/2 begins with. */
export const preface: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export const frameTypes = {
  data: 0,
  headers: 1,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const

export const flags = { none: 0, endStream: 1, ack: 1, endHeaders: 4 } as const

/** One frame as it stands on the wire. */
export function frame(
  type: keyof typeof frameTypes,
  flag: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = frameTypes[type]
  head[4] = flag
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** A header block without compression: literals that are not indexed. */
export function block(headers: readonly (readonly [name: string, value: string])[]): Buffer {
  const pieces = headers.flatMap(([name, value]) => [
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ])
  return Buffer.concat(pieces)
}

export const get: Buffer = block([
  [':method', 'GET'],
  [':scheme', 'http'],
  [':authority', 'a.test'],
  [':path', '/a'],
])

export const post: Buffer = block([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'a.test'],
  [':path', '/a'],
])

/** A connection on which frames are sent as they are; `received` is all that came. One that does not greet has sent nothing yet. */
export async function openRaw(
  port: number,
  greets = true,
): Promise<{ socket: Socket; received: () => Buffer; closed: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1')
  const pieces: Buffer[] = []
  socket.on('error', () => {})
  socket.on('data', piece => pieces.push(piece))
  const closed = once(socket, 'close')
  await once(socket, 'connect')
  if (greets) socket.write(Buffer.concat([preface, frame('settings', 0, 0)]))
  return { socket, received: () => Buffer.concat(pieces), closed }
}

/** The types of the frames in a stream of bytes, in order. */
export function framesIn(bytes: Buffer): { type: number; flag: number; stream: number; payload: Buffer }[] {
  const frames = []
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3)
    const [type, flag, stream] = [bytes[at + 3]!, bytes[at + 4]!, bytes.readUInt32BE(at + 5) & 0x7fffffff]
    frames.push({ type, flag, stream, payload: bytes.subarray(at + 9, at + 9 + length) })
    at += 9 + length
  }
  return frames
}
