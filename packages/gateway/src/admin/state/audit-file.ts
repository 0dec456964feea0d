import { open, rename, stat } from 'node:fs/promises'
import { z } from 'diana-limiter/schema'
import { FileSink } from '../../telemetry/logging/line-sinks.ts'
import { LineWriter } from '../../telemetry/logging/line-writer.ts'
import type { AuditEntry } from '../audit.ts'

/** A longer file is renamed to `.1`, in the place of an earlier one. */
const mostBytes = 16 * 1024 * 1024
/** Only the end of a file is read back. */
const readBytes = 1024 * 1024
const mode = 0o600

const text = z.string().max(256)
const entryShape = z.object({
  at: z.number().min(0),
  operation: text,
  subject: text,
  from: text,
  who: text,
  via: z.enum(['open', 'token', 'proxy', 'oidc', 'none']),
  role: z.enum(['operator', 'viewer', 'none']),
  refused: text.optional(),
  comment: z.string().max(1000).optional(),
})

/** The file that has a JSON line for each change. It may be renamed at any time: a new one is begun. */
export class AuditFile {
  /** The entries that earlier runs have written, the oldest first. */
  readonly earlier: readonly AuditEntry[]
  readonly #path: string
  readonly #writer: LineWriter
  readonly #onTrouble: (trouble: string) => void
  #bytes: number
  #rotating: Promise<void> | undefined

  private constructor(path: string, sink: FileSink, end: FileEnd, onTrouble: (trouble: string) => void) {
    this.#path = path
    this.#onTrouble = onTrouble
    this.#bytes = end.size
    this.#writer = new LineWriter(sink, { onTrouble, name: 'the list of changes' })
    this.earlier = end.lines.flatMap(parseEntry)
    // a line that was cut off by the end of a process must not swallow the next one
    if (end.isCut) this.#writer.write('\n')
  }

  /** Rejects if the file cannot be written; no content of the file makes it fail. */
  static async open(path: string, onTrouble: (trouble: string) => void): Promise<AuditFile> {
    const before = await stat(path).catch(() => undefined)
    // a pipe would wait for its reader
    if (before && !before.isFile()) throw new Error('not a regular file')
    const sink = await FileSink.open(path, mode)
    const end = await readEnd(path).catch(() => ({ lines: [], isCut: false, size: 0 }))
    return new AuditFile(path, sink, end, onTrouble)
  }

  write(entry: AuditEntry): void {
    const line = `${toAscii(JSON.stringify(entry))}\n`
    this.#bytes += line.length
    this.#writer.write(line)
    if (this.#bytes > mostBytes) this.#rotating ??= this.#rotate()
  }

  reopen(): Promise<void> {
    return this.#writer.reopen()
  }

  async close(): Promise<void> {
    await this.#rotating
    await this.#writer.close()
  }

  async #rotate(): Promise<void> {
    this.#bytes = 0
    await rename(this.#path, `${this.#path}.1`).catch(error =>
      this.#onTrouble(`${this.#path} cannot be renamed (${error.code}) and grows further`),
    )
    await this.#writer.reopen()
    this.#rotating = undefined
  }
}

interface FileEnd {
  readonly lines: readonly string[]
  /** True if the last line has no end. */
  readonly isCut: boolean
  readonly size: number
}

async function readEnd(path: string): Promise<FileEnd> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const from = Math.max(0, size - readBytes)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from)
    const lines = buffer.subarray(0, bytesRead).toString('utf8').split('\n')
    // the first may be the rest of a line
    if (from > 0) lines.shift()
    return { lines, isCut: size > 0 && buffer[bytesRead - 1] !== 0x0a, size }
  } finally {
    await file.close()
  }
}

function parseEntry(line: string): AuditEntry[] {
  try {
    const { data } = entryShape.safeParse(JSON.parse(line))
    return data === undefined ? [] : [data]
  } catch {
    return []
  }
}

/** Writes JSON in ASCII, which is all that the writer takes. */
function toAscii(json: string): string {
  return json.replace(/[\u007f-\uffff]/g, one => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
