import { attempt } from 'diana-limiter/gateway'
import type { LineSink } from './line-sinks.ts'

/** The options and reports of a writer. */
export interface LineWriterOptions {
  /** Is called, once a minute at most, with the reason why lines are lost. */
  readonly onTrouble: (trouble: string) => void
  /** More bytes than these are not kept for a reader who is behind; 4 MiB unless given. */
  readonly maxPendingBytes?: number | undefined
  /** The name of what is written, for messages; the access log unless given. */
  readonly name?: string | undefined
}

const usualMaxPendingBytes = 4 * 1024 * 1024
const flushMs = 100
const refreshMs = 1000
const troubleMs = 60_000
const closeMs = 1000

/**
 * Writes lines in the background, several at a time. Memory is bounded: if the reader or the disk is too slow, new lines are
 * dropped and counted. A file is reopened within a second after it was renamed.
 */
export class LineWriter {
  readonly #sink: LineSink
  readonly #onTrouble: (trouble: string) => void
  readonly #maxPendingBytes: number
  readonly #name: string
  #lines: string[] = []
  #pendingBytes = 0
  #dropped = 0
  #unreported = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #refreshAt = 0
  #troubleAt = Number.NEGATIVE_INFINITY

  constructor(sink: LineSink, options: LineWriterOptions) {
    const { onTrouble, maxPendingBytes = usualMaxPendingBytes, name = 'the access log' } = options
    this.#sink = sink
    this.#onTrouble = onTrouble
    this.#maxPendingBytes = maxPendingBytes
    this.#name = name
    this.#refreshAt = performance.now() + refreshMs
  }

  /** Lines that were not written since the start. */
  get dropped(): number {
    return this.#dropped
  }

  /** Takes a line of ASCII characters that ends with a line feed. */
  write(line: string): void {
    if (this.#pendingBytes + line.length > this.#maxPendingBytes) {
      this.#dropped++
      this.#unreported++
      return
    }
    this.#lines.push(line)
    this.#pendingBytes += line.length
    if (this.#writing !== undefined) return
    if (this.#pendingBytes >= this.#sink.chunkBytes) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), flushMs).unref()
  }

  /** Goes on in a new file, if the file was renamed. */
  async reopen(): Promise<void> {
    this.#refreshAt = 0
    this.#flush()
    await this.#writing
  }

  /** Writes what is pending, within a second. */
  async close(): Promise<void> {
    this.#flush()
    let late: NodeJS.Timeout | undefined
    const deadline = new Promise<void>(resolve => {
      late = setTimeout(resolve, closeMs)
    })
    await Promise.race([this.#writing, deadline]).finally(() => clearTimeout(late))
    this.#lines = []
    await this.#sink.close().catch(() => {})
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
  }

  async #writeAll(): Promise<void> {
    await this.#refresh()
    while (this.#lines.length > 0) {
      const { lines, bytes } = this.#takeChunk()
      try {
        await this.#sink.write(bytes)
        this.#reportDropped()
      } catch (error) {
        this.#dropped += lines
        this.#report(`lines of ${this.#name} cannot be written: ${(error as Error).message}`)
      }
      this.#pendingBytes -= bytes.length
    }
  }

  async #refresh(): Promise<void> {
    const now = performance.now()
    if (now < this.#refreshAt) return
    this.#refreshAt = now + refreshMs
    await this.#sink.refresh().catch(error => this.#report(`${this.#name} stays where it was: ${error.message}`))
  }

  /** As many whole lines as may be written at once; at least one. */
  #takeChunk(): { lines: number; bytes: Buffer } {
    let count = 0
    let length = 0
    do {
      length += this.#lines[count]!.length
      count++
    } while (count < this.#lines.length && length + this.#lines[count]!.length <= this.#sink.chunkBytes)
    const lines = this.#lines.splice(0, count)
    return { lines: count, bytes: Buffer.from(lines.join(''), 'latin1') }
  }

  /**
   * Reports dropped lines, but not before something was written: a message to a reader who has stalled could wait for that reader
   * itself.
   */
  #reportDropped(): void {
    if (this.#unreported === 0) return
    this.#report(`${this.#unreported} lines of ${this.#name} were dropped: they are not read or written fast enough`)
    this.#unreported = 0
  }

  #report(trouble: string): void {
    const now = performance.now()
    if (now - this.#troubleAt < troubleMs) return
    this.#troubleAt = now
    attempt('lines of a log', () => this.#onTrouble(trouble))
  }
}
