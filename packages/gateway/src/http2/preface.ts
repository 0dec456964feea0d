import type { Socket } from 'node:net'

/** What every client connection of HTTP/2 begins with (RFC 9113, section 3.4). */
const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1')

/** Reads the first bytes of a connection, puts them back, and reports whether they are the preface of HTTP/2. */
export function readPreface(socket: Socket, onRead: (isHttp2: boolean) => void): void {
  let first: Buffer = Buffer.alloc(0)
  const leave = (): void => void socket.destroy()
  const read = (piece: Buffer): void => {
    first = first.length === 0 ? piece : Buffer.concat([first, piece])
    const length = Math.min(first.length, preface.length)
    const isAlike = first.compare(preface, 0, length, 0, length) === 0
    if (isAlike && length < preface.length) return
    socket.off('data', read)
    socket.off('end', leave)
    socket.pause()
    socket.unshift(first)
    onRead(isAlike)
  }
  socket.on('data', read)
  socket.on('end', leave)
}
