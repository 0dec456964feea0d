import type { Duplex } from 'node:stream'

/** A caller who sends more than this while they wait is not read any further; they are noticed when the connection closes. */
const MOST_BYTES = 65_536

/**
 * Reports that the caller of a connection has closed their half of it, while nobody else reads it: the end of a stream is
 * only noticed by reading. Returns a function that stops it and puts what was read back into the stream.
 */
export function watchLeaving(socket: Duplex, left: () => void): () => void {
  const chunks: Buffer[] = []
  let bytes = 0
  const read = (): void => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read()) {
      chunks.push(chunk)
      bytes += chunk.length
    }
    if (bytes > MOST_BYTES) socket.off('readable', read)
  }
  const stop = (): void => {
    socket.off('readable', read)
    socket.off('end', left)
    if (bytes > 0 && !socket.readableEnded) socket.unshift(Buffer.concat(chunks))
    bytes = 0
  }
  socket.once('end', left)
  socket.on('readable', read)
  return stop
}
