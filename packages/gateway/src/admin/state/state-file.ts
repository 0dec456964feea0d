import { randomUUID } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { fileFault, readRegularFileSync } from 'diana-limiter/gateway'

export interface StateFileOptions {
  readonly mostBytes: number
  readonly onTrouble: (trouble: string) => void
}

const troubleMs = 60_000
// documents and names of callers may be secret
const mode = 0o600

/** A value that is kept in a file of JSON. Each write replaces the whole file; writes that come faster than the disk are one. */
export class StateFile {
  readonly #path: string
  readonly #options: StateFileOptions
  #pending: (() => unknown) | undefined
  #writing: Promise<void> | undefined
  #troubleAt = Number.NEGATIVE_INFINITY

  constructor(path: string, options: StateFileOptions) {
    this.#path = path
    this.#options = options
  }

  /** Returns what was written last; undefined if there is nothing, or nothing that can be read. */
  read(): unknown {
    try {
      const bytes = readRegularFileSync(this.#path, { mostBytes: this.#options.mostBytes, noLinks: true })
      return JSON.parse(bytes.toString())
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      const reason = error instanceof SyntaxError ? 'it is not JSON' : fileFault(error)
      this.#options.onTrouble(`${this.#path} cannot be read (${reason}): what it held is left out`)
      return undefined
    }
  }

  /** Writes what `value` returns when the disk is free for it. */
  write(value: () => unknown): void {
    this.#pending = value
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
    })
  }

  /** Resolves when everything is written. */
  async close(): Promise<void> {
    await this.#writing
  }

  async #writeAll(): Promise<void> {
    // one turn later, so that several changes of one request are one write
    await Promise.resolve()
    while (this.#pending !== undefined) {
      const value = this.#pending
      this.#pending = undefined
      await this.#replace(value).catch(error => this.#report(error))
    }
  }

  async #replace(value: () => unknown): Promise<void> {
    const text = JSON.stringify(value())
    const beside = `${this.#path}.${randomUUID()}.new`
    try {
      await writeFile(beside, text, { flush: true, flag: 'wx', mode })
      await rename(beside, this.#path)
    } catch (error) {
      await rm(beside, { force: true }).catch(() => {})
      throw error
    }
  }

  #report(error: unknown): void {
    const now = performance.now()
    if (now - this.#troubleAt < troubleMs) return
    this.#troubleAt = now
    this.#options.onTrouble(`${this.#path} cannot be written (${fileFault(error)}): what it holds is lost at a restart`)
  }
}
