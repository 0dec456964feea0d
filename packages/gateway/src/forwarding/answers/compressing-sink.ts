import type { CallReply, CallRequest } from '../../http/call.ts'
import { type Compressible, isOfTheBytes, type WrittenHead } from '../../services/compression/compressible.ts'
import type { Encoding } from '../../settings/compression-settings.ts'
import { type Compressor, hasCompressor, takeCompressor } from './compressors.ts'
import type { OutletSource, ResponseSink } from './response-sink.ts'

type Trailers = readonly (string | Buffer)[] | null

/** Compresses an answer on its way to another sink, if its head says that it may be. */
export class CompressingSink implements ResponseSink {
  readonly #sink: ResponseSink
  readonly #compressible: Compressible
  readonly #request: CallRequest
  readonly #reply: CallReply
  #source: OutletSource | undefined
  #compressor: Compressor | undefined
  /** True if an answer without a length may be a stream: the caller wants each piece at once. */
  #isStream = false

  constructor(sink: ResponseSink, compressible: Compressible, request: CallRequest, reply: CallReply) {
    this.#sink = sink
    this.#compressible = compressible
    this.#request = request
    this.#reply = reply
  }

  begin(status: number, text: string, headers: readonly string[], source: OutletSource): void {
    const written = this.#written(status, headers)
    if (written.encoding === undefined) this.#sink.begin(status, text, written.headers, source)
    else {
      const length = lengthIn(headers)
      this.#isStream = length === undefined
      this.#source = source
      const compressor = this.#open(written.encoding, length)
      try {
        this.#sink.begin(status, text, written.headers, {
          onReady: () => compressor.resume(),
          onGone: () => {
            compressor.destroy()
            source.onGone()
          },
        })
      } catch (error) {
        compressor.destroy()
        throw error
      }
    }
  }

  send(status: number, text: string, headers: readonly string[], body: Buffer): void {
    const written = this.#written(status, headers)
    if (written.encoding === undefined) this.#sink.send(status, text, written.headers, body)
    else {
      this.begin(status, text, headers, nothingToDo)
      this.#isStream = false
      this.write(body)
      this.end()
    }
  }

  write(chunk: Buffer): boolean {
    const compressor = this.#compressor
    if (compressor === undefined) return this.#sink.write(chunk)
    if (compressor.destroyed) return true
    const hasRoom = compressor.write(chunk, () => {
      if (this.#isStream && compressor.writableLength === 0 && !compressor.writableEnded) compressor.flush()
    })
    if (!hasRoom) compressor.once('drain', () => this.#source!.onReady())
    return hasRoom
  }

  end(trailers: Trailers = null): void {
    const compressor = this.#compressor
    if (compressor === undefined) this.#sink.end(trailers)
    else if (!compressor.destroyed) {
      compressor.once('end', () => this.#sink.end(stillTrue(trailers)))
      compressor.end()
    }
  }

  breakOff(error: Error): void {
    this.#compressor?.destroy()
    this.#sink.breakOff(error)
  }

  /** Returns the head as it is written, with an encoding if there is a body to compress. */
  #written(status: number, headers: readonly string[]): WrittenHead {
    const { method, headers: asked } = this.#request
    const written = this.#compressible.write(
      { status, headers },
      {
        // beyond the bound, the answer is written as for a caller that asks for no encoding
        acceptEncoding: hasCompressor() ? String(asked['accept-encoding'] ?? '') : undefined,
        ifNoneMatch: asked['if-none-match'],
      },
    )
    return method === 'HEAD' ? { headers: written.headers } : written
  }

  #open(encoding: Encoding, length: number | undefined): Compressor {
    const { raw } = this.#reply
    const compressor = takeCompressor(encoding, length)
    const onGone = (): void => {
      compressor.destroy()
    }
    compressor.on('data', (piece: Buffer) => {
      if (!this.#sink.write(piece)) compressor.pause()
    })
    compressor.on('error', error => this.breakOff(error))
    raw.once('close', onGone)
    compressor.once('close', () => raw.off('close', onGone))
    this.#compressor = compressor
    return compressor
  }
}

/** A source for an answer that has come whole: nothing is left to be asked for. */
const nothingToDo: OutletSource = { onReady: () => {}, onGone: () => {} }

function lengthIn(headers: readonly string[]): number | undefined {
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] === 'content-length') return Number(headers[at + 1])
  }
  return undefined
}

function stillTrue(trailers: Trailers): Trailers {
  if (trailers === null) return null
  return trailers.filter((_, at) => !isOfTheBytes(trailers[at - (at % 2)]!.toString('latin1' as never)))
}
