import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { problemText } from '../problem.ts'
import { recordOf } from '../telemetry/call-record.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

const statuses: Readonly<Record<string, [status: number, detail: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of this call are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'This call took too long to arrive.'],
}

type CallerSocket = Socket & { _httpMessage?: ServerResponse | null }

/** Makes an answer as it stands on the connection. */
export type UnreadableText = (status: number, detail: string) => string

const unreadable = new WeakSet<Socket>()

/** Bytes that are no call: nothing behind them on the same connection can be trusted. They are answered in their turn. */
export function answerUnreadable(
  error: NodeJS.ErrnoException,
  socket: CallerSocket,
  telemetry: Telemetry,
  textOf: UnreadableText = problemText,
): void {
  const [status, detail] = statuses[error.code ?? ''] ?? [400, 'This call cannot be read.']
  const answer = (current: ServerResponse | null | undefined): void => {
    if (error.code !== 'ECONNRESET' && socket.writable && current?.headersSent !== true) {
      const write = (): boolean => socket.write(textOf(status, detail))
      const record = current ? recordOf(current.req) : undefined
      if (record === undefined) telemetry.answer(socket, status, write)
      else {
        write()
        record.answered(status)
        record.failedByCaller()
      }
    }
    socket.destroySoon()
  }
  const current = socket._httpMessage
  // nothing follows what was begun: the caller has left
  if (error.code === 'HPE_INVALID_EOF_STATE') {
    socket.destroy()
    return
  }
  // in the body of the call under way, which cannot be answered otherwise; or behind it, and then it comes first
  if (!current?.req.complete || error.code === 'ECONNRESET') answer(current)
  else if (!unreadable.has(socket)) {
    unreadable.add(socket)
    current.once('close', () => answer(undefined))
  }
}
