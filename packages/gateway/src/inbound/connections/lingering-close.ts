import type { Socket } from 'node:net'

/** The longest time for which a caller may go on sending, and the longest pause in it. */
const lingerMs = 30_000
const pauseMs = 2000

/**
 * Makes a socket end the way RFC 9112 (section 9.6) asks for: after the last answer it is closed in one direction only, and what
 * the caller still sends is read and dropped for a while. A socket that is closed with unread bytes is reset, and a reset may
 * destroy an answer that the caller has not read yet, such as the refusal of a large upload.
 */
export function closeLingering(socket: Socket): void {
  socket.destroySoon = () => {
    if (socket.writableEnded) return
    socket.end()
    const pause = setTimeout(() => socket.destroy(), pauseMs)
    const end = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => {
      clearTimeout(pause)
      clearTimeout(end)
    })
    // Node's parser stops reading when a body has no reader any more: this takes the socket from it
    socket.on('data', () => {})
    socket.removeAllListeners('data')
    socket.on('data', () => pause.refresh())
    socket.resume()
    // resume() takes a stream that the parser has stopped for running
    socket._read(0)
  }
}
