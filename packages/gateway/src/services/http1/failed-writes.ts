import type { Socket } from 'node:net'

/** How long an answer may still take to arrive after a service has stopped reading. */
const answerMs = 1000

type Done = (error?: Error | null) => void

/**
 * Makes a socket outlive a write that fails because the other side has closed. A service may answer an upload early and close
 * at once; Node would then destroy the socket for the failed write, and the answer that has arrived would never be read. Here the
 * rest of the upload is dropped instead, and the socket ends when all has been read.
 */
export function readAfterFailedWrites(socket: Socket): void {
  const write = socket._write.bind(socket)
  const writeAll = socket._writev!.bind(socket)
  let hasFailed = false
  // of the write under way: a stream makes one at a time
  let onDone: Done
  const onWritten: Done = error => {
    if (!isClosedByOther(error)) {
      onDone(error)
      return
    }
    hasFailed = true
    const timer = setTimeout(() => socket.destroy(error), answerMs)
    socket.once('close', () => clearTimeout(timer))
    onDone()
  }
  socket._write = (piece, encoding, done) => {
    onDone = done
    if (hasFailed) done()
    else write(piece, encoding, onWritten)
  }
  socket._writev = (pieces, done) => {
    onDone = done
    if (hasFailed) done()
    else writeAll(pieces, onWritten)
  }
}

function isClosedByOther(error: NodeJS.ErrnoException | null | undefined): error is NodeJS.ErrnoException {
  return error?.code === 'EPIPE' || error?.code === 'ECONNRESET'
}
