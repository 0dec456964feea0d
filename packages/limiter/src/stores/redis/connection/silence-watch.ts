import type { Socket } from 'node:net'
import { repeat } from '../../../common/background.ts'

const TICK_MS = 100
/** Ticks, not time: while this process is busy, answers may have arrived that it has not read yet. */
const MOST_TICKS = 5

/**
 * Destroys a socket on which something was sent and nothing has been received for half a second, without waiting for the
 * other side to agree: packets may be lost both ways.
 */
export function endWhenSilent(socket: Socket, onSilent: () => void): void {
  // from the beginning of the connection, for the first commands are under way already
  let [bytesRead, answered] = [0, 0]
  let ticks = 0
  const watch = repeat('silent connections to Redis', TICK_MS, () => {
    if (socket.bytesRead !== bytesRead) {
      bytesRead = socket.bytesRead
      answered = socket.bytesWritten
      ticks = 0
    } else if (socket.bytesWritten > answered && ++ticks >= MOST_TICKS) {
      onSilent()
      socket.destroy(new Error(`no answer for ${TICK_MS * MOST_TICKS} ms`))
    }
  })
  socket.once('close', () => watch.stop())
}
