import { resolve } from 'node:path'
import type { SecureContextOptions } from 'node:tls'
import type { ServiceTlsSettings } from '../../settings/tls-settings.ts'
import { FileChanges } from './file-changes.ts'
import { readAuthorities, readPair } from './pem.ts'
import type { TlsOptionsOfFiles } from './server-tls.ts'

/** The options that a new connection to a service is opened with. */
export interface ServiceTlsOptions extends Pick<SecureContextOptions, 'ca' | 'cert' | 'key'> {
  readonly rejectUnauthorized: boolean
}

const lookEveryMs = 1000

/**
 * Verifies a service, and identifies the gateway to it by a certificate. The files are looked at when a connection is opened, at
 * most once a second; files that do not fit leave the old ones in use.
 */
export class ServiceTls {
  readonly #settings: ServiceTlsSettings
  readonly #files: TlsOptionsOfFiles
  readonly #changes: FileChanges
  #options: ServiceTlsOptions
  #lookedAt = performance.now()

  constructor(settings: ServiceTlsSettings, files: TlsOptionsOfFiles) {
    this.#settings = settings
    this.#files = files
    const { ca, cert, key } = settings
    this.#changes = new FileChanges([ca, cert, key].filter(file => file !== undefined).map(file => this.#at(file)))
    this.#options = this.#read()
  }

  /** The name that is asked for and that the certificate of the service must be for; its host unless given. */
  get serverName(): string | undefined {
    return this.#settings.serverName
  }

  get options(): ServiceTlsOptions {
    const now = performance.now()
    if (now - this.#lookedAt >= lookEveryMs) {
      this.#lookedAt = now
      this.#lookAgain()
    }
    return this.#options
  }

  #lookAgain(): void {
    try {
      if (this.#changes.haveHappened()) this.#options = this.#read()
    } catch (error) {
      this.#files.onTrouble(error instanceof Error ? error.message : String(error))
    }
  }

  #at(file: string): string {
    return resolve(this.#files.folder, file)
  }

  #read(): ServiceTlsOptions {
    const { ca, cert, key, verify } = this.#settings
    const now = Date.now()
    const authorities = ca === undefined ? undefined : readAuthorities(this.#at(ca), now)
    const pair = cert === undefined ? undefined : readPair({ cert: this.#at(cert), key: this.#at(key!) }, now)
    for (const warning of [...(authorities?.warnings ?? []), ...(pair?.warnings ?? [])]) {
      this.#files.onWarning?.(warning)
    }
    return { rejectUnauthorized: verify, ...(authorities && { ca: authorities.value }), ...pair?.value }
  }
}
