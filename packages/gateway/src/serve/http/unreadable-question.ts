import type { Socket } from 'node:net'
import { answerText, problemRefusal } from '../../inbound/problem.ts'
import { type Dialect, dialectOf } from './dialects.ts'

const longestLine = 256
const asked = new WeakMap<Socket, Dialect>()

/** Remembers how a connection asks: its next question may be one that cannot be read. */
export function rememberDialect(socket: Socket, dialect: Dialect): void {
  if (asked.get(socket) !== dialect) asked.set(socket, dialect)
}

/**
 * Answers a question that cannot be read, in the statuses that the proxy understands. A connection that is closed without an answer
 * would count as a decision server that has failed, and a caller decides what the proxy puts into its question.
 */
export function unreadableQuestion(
  { rawPacket }: { readonly rawPacket?: unknown },
  socket: Socket,
): (status: number, detail: string) => string {
  const dialect = dialectIn(rawPacket) ?? asked.get(socket)
  return (status, detail) => {
    const refusal = problemRefusal(status, detail)
    return answerText(dialect?.refusal?.(refusal) ?? refusal)
  }
}

/** Returns the dialect of the question whose first line a packet begins with. */
function dialectIn(packet: unknown): Dialect | undefined {
  if (!Buffer.isBuffer(packet)) return undefined
  const [, url] = /^[A-Z]+ (\S+) HTTP\/1/.exec(packet.toString('latin1', 0, longestLine)) ?? []
  return url === undefined ? undefined : dialectOf(url)
}
