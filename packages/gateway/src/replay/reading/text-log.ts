import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { LogError, type LogSource } from './log-chunks.ts'

/** The length that is read between two turns of the event loop: other work goes on meanwhile. */
const PIECE = 65_536

/** Returns a log that is a text in memory. */
export function textLog(name: string, text: string): LogSource {
  async function* chunks(): AsyncGenerator<string> {
    for (let at = 0; at < text.length; at += PIECE) {
      await nextTurn()
      yield text.slice(at, at + PIECE)
    }
  }
  return { name, size: text.length, bytesRead: () => text.length, chunks: chunks(), close: () => {} }
}

/** Returns the last `bytes` of a file, from the beginning of a line on. */
export async function endOfLog(path: string, bytes: number): Promise<LogSource> {
  const { size } = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new LogError(`${path} cannot be read (${error.code})`)
  })
  const start = Math.max(0, size - bytes)
  const stream = createReadStream(path, { start, highWaterMark: PIECE, encoding: 'latin1' })
  async function* chunks(): AsyncGenerator<string> {
    let isCut = start > 0
    for await (const chunk of stream as AsyncIterable<string>) {
      const from = isCut ? chunk.indexOf('\n') + 1 : 0
      isCut = false
      await nextTurn()
      yield chunk.slice(from)
    }
  }
  return {
    name: path,
    size: size - start,
    bytesRead: () => stream.bytesRead,
    chunks: chunks(),
    close: () => stream.destroy(),
  }
}
