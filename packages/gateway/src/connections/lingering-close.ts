import type { Socket } from 'node:net'

const lingerMs = 2000

/**
 * Makes a socket end the way RFC 9112 (section 9.6) asks for: after the last answer it is closed in one direction only, and what
 * the caller still sends is read and dropped for a moment. A socket that is closed with unread bytes is reset, and a reset may
 * destroy an answer that the caller has not read yet, such as the refusal of a large upload.
 */
export function closeLingering(socket: Socket): void {
  socket.destroySoon = () => {
    if (socket.writableEnded) return
    socket.end()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('end', () => socket.destroy())
    socket.once('close', () => clearTimeout(timer))
    socket.resume()
  }
}
