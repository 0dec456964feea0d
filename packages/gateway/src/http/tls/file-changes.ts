import { statSync } from 'node:fs'
import { fileFault } from 'diana-limiter/gateway'

/** Finds whether any of some files has changed since it was asked last. */
export class FileChanges {
  readonly #paths: readonly string[]
  #seen: string

  constructor(paths: readonly string[]) {
    this.#paths = paths
    this.#seen = this.#look()
  }

  haveHappened(): boolean {
    const seen = this.#look()
    if (seen === this.#seen) return false
    this.#seen = seen
    return true
  }

  #look(): string {
    return this.#paths
      .map(path => {
        try {
          const { ino, size, mtimeNs } = statSync(path, { bigint: true })
          return `${ino} ${size} ${mtimeNs}`
        } catch (error) {
          // a folder that may no longer be entered is reported once, like a file that is gone
          return fileFault(error)
        }
      })
      .join()
  }
}
