import { createPrivateKey, X509Certificate } from 'node:crypto'
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { DianaError } from 'diana-limiter'
import { fileTrouble, readRegularFileSync } from 'diana-limiter/words'

/** A certificate with its chain, and its private key. */
export interface TlsPair {
  readonly cert: Buffer
  readonly key: Buffer
}

const lookEveryMs = 1000

/** A certificate and its key in files, read again when they change; a pair that does not fit leaves the old one in use. */
export class TlsFiles {
  readonly #paths: readonly string[]
  readonly #onTrouble: (trouble: string) => void
  #current: TlsPair
  #seen: string
  #timer: NodeJS.Timeout | undefined

  constructor(
    files: { readonly cert: string; readonly key: string },
    options: { readonly folder: string; readonly onTrouble: (trouble: string) => void },
  ) {
    this.#paths = [resolve(options.folder, files.cert), resolve(options.folder, files.key)]
    this.#onTrouble = options.onTrouble
    this.#seen = this.#look()
    this.#current = this.#read()
  }

  get current(): TlsPair {
    return this.#current
  }

  /** Tells of every new pair. */
  follow(onChange: (pair: TlsPair) => void): void {
    this.#timer = setInterval(() => this.#lookAgain(onChange), lookEveryMs).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #lookAgain(onChange: (pair: TlsPair) => void): void {
    try {
      const seen = this.#look()
      if (seen === this.#seen) return
      this.#seen = seen
      const pair = this.#read()
      onChange(pair)
      this.#current = pair
    } catch (error) {
      this.#onTrouble(error instanceof Error ? error.message : String(error))
    }
  }

  #look(): string {
    return this.#paths
      .map(path => {
        try {
          const { ino, size, mtimeNs } = statSync(path, { bigint: true })
          return `${ino} ${size} ${mtimeNs}`
        } catch (error) {
          // a folder that may no longer be entered is told once, like a file that is gone
          return fileTrouble(error)
        }
      })
      .join()
  }

  #read(): TlsPair {
    const [certPath, keyPath] = this.#paths as [string, string]
    const fault = (what: string, cause: unknown): DianaError => new DianaError('BAD_RULES', what, { cause })
    const read = (path: string): Buffer => {
      try {
        return readRegularFileSync(path)
      } catch (cause) {
        throw fault(`${path} cannot be read (${fileTrouble(cause)}): check the path`, cause)
      }
    }
    const pair = { cert: read(certPath), key: read(keyPath) }
    let fits: boolean
    try {
      fits = new X509Certificate(pair.cert).checkPrivateKey(createPrivateKey(pair.key))
    } catch (cause) {
      throw fault(
        `${certPath} and ${keyPath} are no certificate and key: both must be PEM, without a passphrase`,
        cause,
      )
    }
    if (!fits) throw fault(`the key in ${keyPath} is not that of the certificate in ${certPath}`, undefined)
    return pair
  }
}
