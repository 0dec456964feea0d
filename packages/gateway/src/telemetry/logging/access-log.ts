import { resolve } from 'node:path'
import { DianaError } from 'diana-limiter'
import { verdictOf } from 'diana-limiter/http'
import type { AccessLogSettings } from '../../settings/access-log-settings.ts'
import type { CallRecord } from '../call-record.ts'
import { FileSink, type LineSink, standardSink } from './line-sinks.ts'
import { LineWriter } from './line-writer.ts'
import { type LineFormat, lineFormats, type ReplayFields } from './log-line.ts'

export interface AccessLogOptions {
  /** The folder that a relative path of the log begins in. */
  readonly folder: string
  /** The caller's address as rules count it. */
  readonly addressOf: (record: CallRecord) => string | undefined
  readonly onTrouble: (trouble: string) => void
  /** Returns what `diana replay` needs of a call; digests of the values that distinguish callers if `isDigest` is true. */
  readonly replayOf?: ((record: CallRecord, isDigest: boolean) => ReplayFields | undefined) | undefined
}

/** Writes a line for each call that has ended. */
export class AccessLog {
  readonly #settings: AccessLogSettings
  readonly #options: AccessLogOptions
  readonly #format: LineFormat
  readonly #writer: LineWriter

  private constructor(settings: AccessLogSettings, options: AccessLogOptions, sink: LineSink) {
    this.#settings = settings
    this.#options = options
    this.#format = lineFormats[settings.format]
    this.#writer = new LineWriter(sink, options)
  }

  /** Throws if the log cannot be written. */
  static async open(settings: AccessLogSettings, options: AccessLogOptions): Promise<AccessLog> {
    return new AccessLog(settings, options, await openSink(settings.to, options.folder))
  }

  /** Lines that were not written since the start. */
  get dropped(): number {
    return this.#writer.dropped
  }

  add(record: CallRecord): void {
    const { sample, query, replay } = this.#settings
    if (sample < 1 && record.status < 400 && Math.random() >= sample) return
    this.#writer.write(
      this.#format({
        record,
        address: this.#options.addressOf(record),
        verdict: verdictOf(record.request),
        endedTime: Date.now(),
        hidesQuery: !query,
        replay: replay && this.#options.replayOf?.(record, replay === 'digest'),
      }),
    )
  }

  reopen(): Promise<void> {
    return this.#writer.reopen()
  }

  close(): Promise<void> {
    return this.#writer.close()
  }
}

async function openSink(to: string, folder: string): Promise<LineSink> {
  if (to === 'stdout' || to === 'stderr') return standardSink(to === 'stdout' ? 1 : 2)
  try {
    return await FileSink.open(resolve(folder, to))
  } catch (error) {
    const remedy = 'create its folder, allow Diana to write there, or name another file'
    throw new DianaError('BAD_RULES', `gateway.accessLog.to cannot be written (${(error as Error).message}): ${remedy}`)
  }
}
