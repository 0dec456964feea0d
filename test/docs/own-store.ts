import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { LedgerChange, TransactionalStore } from 'diana-limiter/store'

type Rows = Map<string, { readonly ledger: string; readonly until: number }>

const LONGEST_LOCK_MS = 5000

/** Keeps ledgers in one file of a directory, for the processes of a machine. */
export class FileStore implements TransactionalStore {
  readonly #file: string

  constructor(directory: string) {
    this.#file = join(directory, 'ledgers.json')
  }

  async transact(_keys: readonly string[], change: LedgerChange): Promise<void> {
    await this.#lock()
    try {
      const rows = await this.#read()
      const writes = change({ get: key => rows.get(key)?.ledger })
      if (writes.length === 0) return
      for (const [key, { until }] of rows) if (until < Date.now()) rows.delete(key)
      for (const { key, ledger, keepMs } of writes) {
        if (ledger === undefined) rows.delete(key)
        else rows.set(key, { ledger, until: Date.now() + keepMs })
      }
      // a file that is renamed is there whole or not at all
      await writeFile(`${this.#file}.new`, JSON.stringify([...rows]))
      await rename(`${this.#file}.new`, this.#file)
    } finally {
      await rm(`${this.#file}.lock`, { recursive: true })
    }
  }

  async keys(prefix: string, most: number): Promise<string[]> {
    return [...(await this.#read()).keys()].filter(key => key.startsWith(prefix)).slice(0, most)
  }

  async #read(): Promise<Rows> {
    return new Map(JSON.parse(await readFile(this.#file, 'utf8').catch(() => '[]')))
  }

  async #lock(): Promise<void> {
    const lock = `${this.#file}.lock`
    while (!(await mkdir(lock).then(() => true, isTaken))) {
      // a process that was killed leaves its lock behind
      const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Date.now() }))
      if (Date.now() - mtimeMs > LONGEST_LOCK_MS) await rm(lock, { recursive: true, force: true })
      else await pause(Math.random() * 4)
    }
  }
}

function isTaken(error: NodeJS.ErrnoException): boolean {
  if (error.code === 'EEXIST') return false
  throw error
}
