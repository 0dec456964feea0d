import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline, Readable } from 'node:stream'
import * as zlib from 'node:zlib'

/** A log that cannot be read; the message says why and what to do. */
export class LogError extends Error {}

export interface LogSource {
  readonly name: string
  /** Bytes as they are stored; undefined if that is not known. */
  readonly size: number | undefined
  /** Returns the number of bytes that have been read. */
  readonly bytesRead: () => number
  /** The text of the log, byte by byte as characters. Throws a LogError. */
  readonly chunks: AsyncIterable<string>
  close(): void
}

const CHUNK_BYTES = 1 << 20

type Zlib = typeof zlib & { createZstdDecompress?: () => NodeJS.ReadWriteStream & Readable }

/** Opens a log: a file, packed or not, or standard input for `-`. */
export async function openLog(name: string, input: AsyncIterable<string | Uint8Array>): Promise<LogSource> {
  if (name !== '-') {
    const found = await stat(name).catch((error: NodeJS.ErrnoException) => {
      throw new LogError(`${name} cannot be read (${error.code}); check the path`)
    })
    if (found.isDirectory()) throw new LogError(`${name} is a folder; name the log files in it`)
    const file = createReadStream(name, { highWaterMark: CHUNK_BYTES })
    return sourceOf(
      name,
      file,
      found.size,
      () => file.bytesRead,
      () => file.destroy(),
    )
  }
  let bytes = 0
  async function* counted(): AsyncGenerator<Buffer> {
    for await (const chunk of input) {
      const buffer =
        typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      bytes += buffer.length
      yield buffer
    }
  }
  const stream = Readable.from(counted(), { objectMode: false, highWaterMark: CHUNK_BYTES })
  return sourceOf(
    'stdin',
    stream,
    undefined,
    () => bytes,
    () => stream.destroy(),
  )
}

function sourceOf(
  name: string,
  stream: Readable,
  size: number | undefined,
  bytesRead: () => number,
  close: () => void,
): LogSource {
  return { name, size, bytesRead, close, chunks: textOf(name, stream) }
}

async function* textOf(name: string, stream: Readable): AsyncGenerator<string> {
  const bytes = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  let first: IteratorResult<Buffer>
  try {
    first = await bytes.next()
  } catch (error) {
    throw new LogError(`${name} cannot be read (${(error as NodeJS.ErrnoException).code}); check the path`)
  }
  if (first.done) return
  const head = first.value
  async function* whole(): AsyncGenerator<Buffer> {
    yield head
    for (;;) {
      const next = await bytes.next()
      if (next.done) return
      yield next.value
    }
  }
  const unpacked = unpack(name, head, whole())
  try {
    for await (const chunk of unpacked) yield (chunk as Buffer).toString('latin1')
  } catch (error) {
    throw error instanceof LogError ? error : new LogError(packingFault(name, error as NodeJS.ErrnoException))
  }
}

/** Unpacks logs that are packed, which is known by their first bytes, whatever their name is. */
function unpack(name: string, head: Buffer, bytes: AsyncIterable<Buffer>): AsyncIterable<unknown> {
  if (head[0] === 0x1f && head[1] === 0x8b) return through(bytes, zlib.createGunzip({ chunkSize: CHUNK_BYTES }))
  if (head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528) {
    const { createZstdDecompress } = zlib as Zlib
    if (createZstdDecompress === undefined)
      throw new LogError(
        `${name} is packed with zstd, which this Node cannot read: zstd -dc ${name} | diana replay RULES -`,
      )
    return through(bytes, createZstdDecompress())
  }
  if (head.subarray(0, 4096).includes(0)) throw new LogError(`${name} is not a log: it is binary data`)
  return bytes
}

/** Errors of either end the reading. */
function through(
  bytes: AsyncIterable<Buffer>,
  unpacker: NodeJS.ReadWriteStream & AsyncIterable<unknown>,
): AsyncIterable<unknown> {
  pipeline(Readable.from(bytes, { objectMode: false }), unpacker, () => {})
  return unpacker
}

function packingFault(name: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'Z_BUF_ERROR' || /unexpected end/.test(error.message))
    return `${name} ends too early: the packed file is cut off`
  if (error.code?.startsWith('Z_') || error.code?.startsWith('ZSTD')) return `${name} is damaged: ${error.message}`
  return `${name} cannot be read: ${error.message}`
}
