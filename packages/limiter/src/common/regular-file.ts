import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open, stat } from 'node:fs/promises'

/** No file that a rule document names needs to be larger, unless it is a rule document itself. */
const USUAL_BYTES = 1024 * 1024

// without O_NONBLOCK, opening a pipe waits for a writer
const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants

export interface ReadOptions {
  /** 1 MiB unless given; a larger file is an error. */
  readonly mostBytes?: number | undefined
  /** True if a symbolic link is an error. */
  readonly noLinks?: boolean | undefined
  /** Throws if the file may not be read. */
  readonly accept?: ((stats: Stats) => void) | undefined
}

/** Reads a regular file whole; a pipe, a device, a directory or a file that is too large is an error at once. */
export async function readRegularFile(path: string, options: ReadOptions = {}): Promise<Buffer> {
  const handle = await open(path, flagsOf(options))
  try {
    const mostBytes = accept(await handle.stat(), options)
    const pieces: Buffer[] = []
    for (let bytes = 0; ; ) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(65_536))
      if (bytesRead === 0) return Buffer.concat(pieces)
      bytes += bytesRead
      if (bytes > mostBytes) throw tooLarge(mostBytes)
      pieces.push(buffer.subarray(0, bytesRead))
    }
  } finally {
    await handle.close()
  }
}

/** Reads a regular file synchronously. */
export function readRegularFileSync(path: string, options: ReadOptions = {}): Buffer {
  const file = openSync(path, flagsOf(options))
  try {
    const mostBytes = accept(fstatSync(file), options)
    const pieces: Buffer[] = []
    for (let bytes = 0; ; ) {
      const buffer = Buffer.allocUnsafe(65_536)
      const bytesRead = readSync(file, buffer)
      if (bytesRead === 0) return Buffer.concat(pieces)
      bytes += bytesRead
      if (bytes > mostBytes) throw tooLarge(mostBytes)
      pieces.push(buffer.subarray(0, bytesRead))
    }
  } finally {
    closeSync(file)
  }
}

/** Throws if the path is not a regular file, before other code reads it, such as Node's import. */
export async function assertRegularFile(path: string): Promise<void> {
  const stats = await stat(path).catch(() => undefined)
  if (stats) accept(stats, { mostBytes: Number.POSITIVE_INFINITY })
}

/** Says why a file could not be read, in short: the system's code, or the problem. */
export function fileFault(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException
  return code ?? message
}

function flagsOf({ noLinks = false }: ReadOptions): number {
  return O_RDONLY | O_NONBLOCK | (noLinks ? O_NOFOLLOW : 0)
}

function accept(stats: Stats, { mostBytes = USUAL_BYTES, accept: check }: ReadOptions): number {
  if (!stats.isFile()) throw new Error('not a regular file')
  if (stats.size > mostBytes) throw tooLarge(mostBytes)
  check?.(stats)
  return mostBytes
}

function tooLarge(mostBytes: number): Error {
  return new Error(`larger than ${mostBytes / 1024} KiB`)
}
