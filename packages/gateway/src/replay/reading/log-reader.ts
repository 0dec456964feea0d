import { chooseReader, type FormatChoice, shown } from '../formats/choose.ts'
import { type LineReader, type LogEntry, newEntry } from '../formats/format.ts'
import { LineSplitter } from './line-splitter.ts'
import { LogError, type LogSource } from './log-chunks.ts'

/** The progress and faults of the reading of one log. */
export interface LogStatus {
  readonly name: string
  reader: LineReader | undefined
  lines: number
  /** Lines that could not be read, and the first of them. */
  bad: number
  readonly badLines: { readonly line: number; readonly text: string }[]
  /** The reason why the log was not read to its end. */
  fault: string | undefined
}

const SAMPLE_LINES = 50
const SHOWN_BAD = 3

/** Reads a log as batches of entries. A log that cannot be read to its end gives those before; one that cannot be read at all throws. */
export async function* readLog(
  source: LogSource,
  choice: FormatChoice & { readonly isWanted?: ((name: string) => boolean) | undefined },
  status: LogStatus,
): AsyncGenerator<LogEntry[]> {
  const splitter = new LineSplitter()
  let sample: string[] | undefined = []
  let batch: LogEntry[] = []
  let reader: LineReader | undefined
  const take = (line: string): void => {
    status.lines++
    const entry = newEntry()
    const isRead = reader!.read(line, entry)
    if (isRead === true) batch.push(entry)
    else if (isRead === false) reportBad(status, line)
  }
  const begin = (): void => {
    const lines = sample!
    sample = undefined
    const whole = chooseReader(choice, lines, source.name)
    reader = (choice.isWanted && whole.want?.(choice.isWanted)) ?? whole
    status.reader = reader
    for (const line of lines) take(line)
  }
  const onLine = (line: string): void => {
    if (sample === undefined) take(line)
    else if (sample.push(line) === SAMPLE_LINES) begin()
  }
  try {
    for await (const chunk of source.chunks) {
      splitter.add(chunk, onLine)
      if (batch.length > 0) {
        yield batch
        batch = []
      }
    }
    splitter.end(onLine)
  } catch (error) {
    if (!(error instanceof LogError) || (status.lines === 0 && (sample?.length ?? 0) === 0)) throw error
    status.fault = error.message
  }
  if (sample !== undefined && sample.length > 0) begin()
  if (batch.length > 0) yield batch
}

function reportBad(status: LogStatus, text: string): void {
  status.bad++
  if (status.badLines.length < SHOWN_BAD) status.badLines.push({ line: status.lines, text: shown(text) })
}
