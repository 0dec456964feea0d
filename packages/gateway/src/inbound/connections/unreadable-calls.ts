import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { recordOf } from '../../telemetry/call-record.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { problemText } from '../problem.ts'
import { versionProblem } from './http-versions.ts'

const problems: Readonly<Record<string, readonly [status: number, detail: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The headers of this call are too large.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'This call took too long to arrive.'],
  HPE_INVALID_VERSION: versionProblem,
}

type CallerSocket = Socket & { _httpMessage?: ServerResponse | null }

/** The ways in which a server records, orders and words the answers to bytes that are no call. */
export interface UnreadableOptions {
  /** Records the answer; left out, nothing does. */
  readonly telemetry?: Telemetry | undefined
  /** Runs something when the calls before it on a connection have been answered; left out, after the answer that is being given. */
  readonly inTurn?: ((socket: Socket, run: () => void) => void) | undefined
  /** Makes the answer as it stands on the connection; left out, a problem document. */
  readonly textOf?: UnreadableText | undefined
}

export type UnreadableText = (status: number, detail: string) => string

const unreadable = new WeakSet<Socket>()

/** Bytes that are no call: nothing behind them on the same connection can be trusted. They are answered in their turn. */
export function answerUnreadable(
  error: NodeJS.ErrnoException,
  socket: CallerSocket,
  { telemetry, inTurn, textOf = problemText }: UnreadableOptions = {},
): void {
  const [status, detail] = problems[error.code ?? ''] ?? [400, 'This call cannot be read.']
  const answer = (current: ServerResponse | null | undefined): void => {
    if (error.code !== 'ECONNRESET' && socket.writable && current?.headersSent !== true) {
      const write = (): boolean => socket.write(textOf(status, detail))
      const record = current ? recordOf(current.req) : undefined
      if (record !== undefined) {
        write()
        record.answered(status)
        record.failedByCaller()
      } else if (telemetry) telemetry.answer(socket, status, write)
      else write()
    }
    socket.destroySoon()
  }
  const current = socket._httpMessage
  // nothing follows what was begun: the caller has left
  if (error.code === 'HPE_INVALID_EOF_STATE') {
    socket.destroy()
    return
  }
  // behind a call that asked for the end of the connection: its answer is the last
  if (error.code === 'HPE_CLOSED_CONNECTION' && current) return
  // in the body of the call under way, which cannot be answered otherwise; or behind it, and then it comes first
  if (!current?.req.complete || error.code === 'ECONNRESET') answer(current)
  else if (!unreadable.has(socket)) {
    unreadable.add(socket)
    const run = (): void => answer(undefined)
    if (inTurn) inTurn(socket, run)
    else current.once('close', run)
  }
}
