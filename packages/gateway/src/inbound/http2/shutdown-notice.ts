import { writeSync } from 'node:fs'
import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/** A GOAWAY without an error that lets all calls pass which are on their way: its last stream is the highest one that there can be. */
const notice = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0])

type SocketWithHandle = Socket & {
  readonly _handle?: { readonly fd?: number; readonly writeQueueSize?: number } | null
}

/** True if the end of a connection can be announced to the other side: frames of this file cannot be sent over TLS. */
export function canAnnounceEnd(socket: Socket): boolean {
  return !('encrypted' in socket)
}

/**
 * Asks the other side to open no further streams on a connection, while those that it opens until it has read this are served (RFC 9113,
 * section 6.8). Node has no function for this notice: after its `goaway()` such streams are ignored. Over TLS nothing is sent; the other
 * side then learns of the end by `close()`, and may send again what came too late.
 */
export function announceEnd(session: ServerHttp2Session, socket: Socket): void {
  if (!canAnnounceEnd(socket) || session.destroyed || session.closed) return
  // the first frame of a connection must be SETTINGS, which have not left before they are acknowledged
  if (!session.pendingSettingsAck && writeNotice(session, socket)) return
  // the answer to a PING proves that all before it has left
  session.ping(() => writeNotice(session, socket))
}

/**
 * Writes the frame to the system directly, between two writes of the session. `socket.write()` must not be used: the session hears of the
 * end of a write that had to wait, takes it for the end of a write of its own, and aborts the process.
 */
function writeNotice(session: ServerHttp2Session, socket: SocketWithHandle): boolean {
  if (session.destroyed || session.closed) return true
  const { fd = -1, writeQueueSize } = socket._handle ?? {}
  // bytes that wait may be the rest of a frame
  if (fd < 0 || writeQueueSize !== 0) return false
  try {
    // a part of the frame would make all that follows unreadable
    if (writeSync(fd, notice) < notice.length) socket.destroy()
    return true
  } catch {
    // the buffer of the system is full, or the other side has left
    return false
  }
}
