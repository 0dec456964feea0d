import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What a certificate says. */
export interface Request {
  readonly subject?: string
  /** As OpenSSL writes them: `DNS:a.test,URI:spiffe://a/b`. */
  readonly names?: string
  readonly days?: number
  readonly isAuthority?: boolean
  /** Whose key signs it; the authority's unless given. */
  readonly issuer?: string
}

/** A certificate authority of a test, made by openssl in a folder of its own. Files are named `<name>.pem` and `<name>.key`. */
export class Authority {
  readonly folder: string = mkdtempSync(join(tmpdir(), 'diana-tls-'))

  constructor() {
    const args = ['req', '-x509', '-nodes', '-days', '30', '-subj', '/CN=Test Root', ...newKey]
    this.#openssl(...args, '-keyout', 'ca.key', '-out', 'ca.pem')
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  pem(name: string): Buffer {
    return readFileSync(this.path(name))
  }

  issue(name: string, { subject = `/CN=${name}`, names, days = 30, isAuthority, issuer = 'ca' }: Request = {}): void {
    const extensions = [`basicConstraints=critical,CA:${isAuthority ? 'TRUE' : 'FALSE'}`]
    if (names) extensions.push(`subjectAltName=${names}`)
    const added = extensions.flatMap(extension => ['-addext', extension])
    this.#openssl(
      'req',
      '-nodes',
      ...newKey,
      '-subj',
      subject,
      ...added,
      '-keyout',
      `${name}.key`,
      '-out',
      `${name}.csr`,
    )
    const signed = ['-CA', `${issuer}.pem`, '-CAkey', `${issuer}.key`, '-CAcreateserial', '-days', String(days)]
    this.#openssl('x509', '-req', '-in', `${name}.csr`, '-copy_extensions', 'copy', ...signed, '-out', `${name}.pem`)
  }

  /** Lists certificates as revoked in `ca.crl`. */
  revoke(...names: readonly string[]): void {
    writeFileSync(this.path('index.txt'), '')
    writeFileSync(
      this.path('ca.conf'),
      '[ca]\ndefault_ca=a\n[a]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=30\n',
    )
    const signed = ['ca', '-config', 'ca.conf', '-cert', 'ca.pem', '-keyfile', 'ca.key']
    for (const name of names) this.#openssl(...signed, '-revoke', `${name}.pem`)
    this.#openssl(...signed, '-gencrl', '-out', 'ca.crl')
  }

  close(): void {
    rmSync(this.folder, { recursive: true })
  }

  #openssl(...args: readonly string[]): void {
    execFileSync('openssl', args, { cwd: this.folder, stdio: ['ignore', 'ignore', 'pipe'] })
  }
}

const newKey: readonly string[] = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
