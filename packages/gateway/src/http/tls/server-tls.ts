import { resolve } from 'node:path'
import {
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
  type Server,
  type TlsOptions,
} from 'node:tls'
import { type Repeated, repeat } from 'diana-limiter/gateway'
import type { TlsSettings } from '../../settings/tls-settings.ts'
import { isPeerGone } from '../gone-peer.ts'
import { CertificateNames, namesOf } from './certificate-names.ts'
import { FileChanges } from './file-changes.ts'
import { chainWarnings, readAuthorities, readPair, readRevocations } from './pem.ts'

export interface TlsOptionsOfFiles {
  /** The folder that paths in the rule file are seen from. */
  readonly folder: string
  /** Is called for files that cannot be used, so that the old ones stay in use. */
  readonly onTrouble: (trouble: string) => void
  /** Is called for files that are used although something is wrong with them. */
  readonly onWarning?: ((warning: string) => void) | undefined
}

/** The contents of the files at one time. */
interface Material {
  /** For callers who ask for no name, or for one that no certificate has. */
  readonly usual: SecureContextOptions
  readonly byName: CertificateNames<SecureContext>
}

const lookEveryMs = 1000
const minVersion = 'TLSv1.2'

/**
 * The certificates that callers see, chosen by the name they ask for, and the authorities that vouch for callers. The files are
 * read again when one of them changes; all of them must fit, or what was read before stays in use.
 */
export class ServerTls {
  readonly #settings: TlsSettings
  readonly #options: TlsOptionsOfFiles
  readonly #changes: FileChanges
  #material: Material
  #repeated: Repeated | undefined

  constructor(settings: TlsSettings, options: TlsOptionsOfFiles) {
    this.#settings = settings
    this.#options = options
    this.#changes = new FileChanges(this.#paths())
    this.#material = this.#read()
  }

  /** Returns the options that a server is made with; contexts of names are looked up as callers come. */
  get serverOptions(): TlsOptions {
    const { clients } = this.#settings
    return {
      ...this.#material.usual,
      ...(clients && { requestCert: true, rejectUnauthorized: clients.require }),
      SNICallback: (name, done) => done(null, this.#material.byName.find(name)),
    }
  }

  /**
   * Follows the files for a server that was made with these options, and refuses callers without a valid certificate, and those that
   * have left already. Comes last: it must see connections before the listeners that are there by then.
   */
  attach(server: Server): void {
    this.#repeated = repeat('files of certificates', lookEveryMs, () => this.#lookAgain(server))
    // if certificates are not required, Node leaves the refusal of wrong ones to its user
    server.prependListener('secureConnection', socket => {
      if (isPeerGone(socket, server)) socket.destroy()
      else if (this.#settings.clients && !socket.authorized && socket.getPeerX509Certificate()) socket.destroy()
    })
  }

  close(): void {
    this.#repeated?.stop()
  }

  #lookAgain(server: Server): void {
    try {
      if (!this.#changes.haveHappened()) return
      const material = this.#read()
      server.setSecureContext(material.usual)
      this.#material = material
    } catch (error) {
      this.#options.onTrouble(error instanceof Error ? error.message : String(error))
    }
  }

  #paths(): string[] {
    const { certificates, clients } = this.#settings
    const files = [...certificates.flatMap(({ cert, key }) => [cert, key]), clients?.ca, clients?.crl]
    return files.filter(file => file !== undefined).map(file => this.#at(file))
  }

  #at(file: string): string {
    return resolve(this.#options.folder, file)
  }

  #read(): Material {
    const { certificates } = this.#settings
    const warnings: string[] = []
    const now = Date.now()
    const byName = new CertificateNames<SecureContext>()
    const common = { minVersion, ...this.#readClients(now, warnings) } as const
    const all = certificates.map(({ cert, key, names }) => {
      const read = readPair({ cert: this.#at(cert), key: this.#at(key) }, now)
      warnings.push(...read.warnings, ...chainWarnings(read.certificates, this.#at(cert)))
      const options: SecureContextOptions = { ...common, ...read.value }
      byName.add(names ?? namesOf(read.certificates[0]!), createSecureContext(options))
      return options
    })
    for (const warning of warnings) this.#options.onWarning?.(warning)
    return { usual: all[0]!, byName }
  }

  #readClients(now: number, warnings: string[]): SecureContextOptions {
    const { clients } = this.#settings
    if (clients === undefined) return {}
    const ca = readAuthorities(this.#at(clients.ca), now)
    warnings.push(...ca.warnings)
    return { ca: ca.value, ...(clients.crl !== undefined && { crl: readRevocations(this.#at(clients.crl)) }) }
  }
}
