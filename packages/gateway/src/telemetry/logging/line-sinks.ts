import { close, constants, fstatSync, openSync, write } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** The place where chunks of whole lines are written, one after another. */
export interface LineSink {
  /** Larger chunks could be mixed with those of other processes. */
  readonly chunkBytes: number
  /** Rejects if the bytes cannot be written; waits while the reader does not read. */
  write(chunk: Buffer): Promise<void>
  /** Goes on in the file that has the name now, if it is another one. */
  refresh(): Promise<void>
  close(): Promise<void>
}

/** The most bytes of a write to a pipe that is not mixed with those of other processes (PIPE_BUF of Linux). */
const pipeChunkBytes = 4096
const fileChunkBytes = 65_536
const retryMs = 20
const fileMode = 0o640

/** Appends to a file, which may be renamed or deleted at any time. */
export class FileSink implements LineSink {
  readonly chunkBytes: number = fileChunkBytes
  readonly #path: string
  readonly #mode: number
  #file: FileHandle

  private constructor(path: string, mode: number, file: FileHandle) {
    this.#path = path
    this.#mode = mode
    this.#file = file
  }

  /** Opens a file; a new one gets this mode. */
  static async open(path: string, mode: number = fileMode): Promise<FileSink> {
    return new FileSink(path, mode, await open(path, 'a', mode))
  }

  async write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; ) at += (await this.#file.write(chunk, at)).bytesWritten
  }

  async refresh(): Promise<void> {
    const named = await stat(this.#path).catch(() => undefined)
    const current = await this.#file.stat()
    if (named !== undefined && named.ino === current.ino && named.dev === current.dev) return
    const before = this.#file
    this.#file = await open(this.#path, 'a', this.#mode)
    await before.close()
  }

  async close(): Promise<void> {
    await this.#file.close()
  }
}

/**
 * Writes to standard output or standard error and never blocks a thread: a thread that waits for a stalled reader would keep the
 * process from ending. A pipe or terminal is opened once more for that, since the flags of the open one are shared with
 * other processes.
 */
export function standardSink(fd: 1 | 2): LineSink {
  const kind = fstatSync(fd)
  if (kind.isSocket()) return new SocketSink(fd)
  if (kind.isFile()) return new DescriptorSink(fd, () => {})
  try {
    const own = openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
    return new DescriptorSink(own, () => close(own))
  } catch {
    return new DescriptorSink(fd, () => {})
  }
}

class DescriptorSink implements LineSink {
  readonly chunkBytes: number = pipeChunkBytes
  readonly #fd: number
  readonly #onClose: () => void
  #isClosed = false

  constructor(fd: number, onClose: () => void) {
    this.#fd = fd
    this.#onClose = onClose
  }

  async write(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length && !this.#isClosed; ) {
      const written = await this.#writeSome(chunk.subarray(at))
      // the reader has not read what was written before
      if (written === 0) await pause(retryMs, undefined, { ref: false })
      at += written
    }
  }

  async refresh(): Promise<void> {}

  async close(): Promise<void> {
    this.#isClosed = true
    this.#onClose()
  }

  #writeSome(bytes: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      write(this.#fd, bytes, (error, written) => {
        if (error === null) resolve(written)
        else if (error.code === 'EAGAIN') resolve(0)
        else reject(error)
      })
    })
  }
}

class SocketSink implements LineSink {
  readonly chunkBytes: number = pipeChunkBytes
  readonly #socket: Socket

  constructor(fd: number) {
    this.#socket = new Socket({ fd, readable: false, writable: true })
    this.#socket.unref()
    // each write gets its own error
    this.#socket.on('error', () => {})
  }

  write(chunk: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.write(chunk, error => (error ? reject(error) : resolve()))
    })
  }

  async refresh(): Promise<void> {}

  // other parts of the process still write there
  async close(): Promise<void> {}
}
