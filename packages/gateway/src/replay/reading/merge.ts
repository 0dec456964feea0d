import type { LogEntry } from '../formats/format.ts'

interface Cursor {
  readonly batches: AsyncIterator<LogEntry[]>
  batch: LogEntry[]
  next: number
}

/** Reads several logs side by side, by the moments of their lines; batches of one log as they come. */
export async function* mergeLogs(logs: readonly AsyncIterable<LogEntry[]>[]): AsyncGenerator<LogEntry[]> {
  if (logs.length === 1) {
    yield* logs[0]!
    return
  }
  const cursors: Cursor[] = []
  for (const log of logs) {
    const cursor: Cursor = { batches: log[Symbol.asyncIterator](), batch: [], next: 0 }
    if (await refill(cursor)) cursors.push(cursor)
  }
  while (cursors.length > 0) {
    const merged: LogEntry[] = []
    for (;;) {
      let first = cursors[0]!
      for (const cursor of cursors) if (atOf(cursor) < atOf(first)) first = cursor
      merged.push(first.batch[first.next++]!)
      if (first.next < first.batch.length) continue
      if (!(await refill(first))) cursors.splice(cursors.indexOf(first), 1)
      break
    }
    yield merged
  }
}

function atOf({ batch, next }: Cursor): number {
  return batch[next]!.at
}

async function refill(cursor: Cursor): Promise<boolean> {
  const { value, done } = await cursor.batches.next()
  if (done) return false
  cursor.batch = value
  cursor.next = 0
  return true
}
