import { createPrivateKey, X509Certificate } from 'node:crypto'
import { createSecureContext, rootCertificates } from 'node:tls'
import { DianaError } from 'diana-limiter'
import { fileFault, readRegularFileSync } from 'diana-limiter/gateway'

/** A certificate with its chain, and its private key. */
export interface Pair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** The contents of files, and what an operator should know about them although they can be used. */
export interface Read<Value> {
  readonly value: Value
  readonly certificates: readonly X509Certificate[]
  readonly warnings: readonly string[]
}

/** Reads a certificate and its private key; throws for files that cannot be used together. */
export function readPair(files: { readonly cert: string; readonly key: string }, now: number): Read<Pair> {
  const pair = { cert: readFile(files.cert), key: readFile(files.key) }
  const certificates = certificatesIn(pair.cert, files.cert)
  const [leaf] = certificates
  const key = keyIn(pair.key, files.key)
  if (!leaf!.checkPrivateKey(key)) {
    const at = certificates.findIndex(one => one.checkPrivateKey(key))
    throw fault(
      at < 0
        ? `the key in ${files.key} is not that of the certificate in ${files.cert}: name the two files that belong together`
        : `the key in ${files.key} is that of certificate ${at + 1} in ${files.cert}: put that certificate first`,
    )
  }
  assertUsable(pair, `${files.cert} and ${files.key}`)
  return { value: pair, certificates, warnings: [...validityWarnings(leaf!, files.cert, now)] }
}

/** Reads the certificates of authorities; throws if one of them can vouch for nothing. */
export function readAuthorities(path: string, now: number): Read<Buffer> {
  const value = readFile(path)
  const certificates = certificatesIn(value, path)
  for (const certificate of certificates) {
    // a certificate that has signed itself vouches for itself
    if (certificate.ca || certificate.checkIssued(certificate)) continue
    const remedy = 'name the file with the certificate of its issuer'
    throw fault(`${path} holds ${nameOf(certificate)}, which is not the certificate of an authority: ${remedy}`)
  }
  assertUsable({ ca: value }, path)
  return { value, certificates, warnings: certificates.flatMap(one => [...validityWarnings(one, path, now)]) }
}

/** Reads a list of revoked certificates. */
export function readRevocations(path: string): Buffer {
  const value = readFile(path)
  if (!value.includes('-----BEGIN X509 CRL-----')) {
    throw fault(`${path} is not a list of revoked certificates in PEM: convert it with openssl crl -inform der`)
  }
  assertUsable({ crl: value }, path)
  return value
}

function readFile(path: string): Buffer {
  try {
    return readRegularFileSync(path)
  } catch (cause) {
    throw fault(`${path} cannot be read (${fileFault(cause)}): check the path`, cause)
  }
}

function certificatesIn(text: Buffer, path: string): X509Certificate[] {
  const blocks = text.toString('latin1').match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g)
  if (blocks === null) {
    const remedy = text.includes('PRIVATE KEY-----')
      ? 'it holds a private key'
      : text[0] === 0x30
        ? 'convert it from DER with openssl x509 -inform der'
        : 'it must begin with -----BEGIN CERTIFICATE-----'
    throw fault(`${path} is not a certificate in PEM: ${remedy}`)
  }
  try {
    return blocks.map(block => new X509Certificate(block))
  } catch (cause) {
    throw fault(`${path} holds a certificate that cannot be read: make it again`, cause)
  }
}

function keyIn(text: Buffer, path: string): ReturnType<typeof createPrivateKey> {
  try {
    return createPrivateKey(text)
  } catch (cause) {
    const remedy = text.includes('ENCRYPTED')
      ? 'it has a passphrase: take it off with openssl pkey'
      : 'it must be in PEM, such as -----BEGIN PRIVATE KEY-----'
    throw fault(`${path} is not a private key that can be used: ${remedy}`, cause)
  }
}

/** Throws if OpenSSL refuses the material; it has bounds of its own, such as on the length of keys. */
function assertUsable(options: Parameters<typeof createSecureContext>[0], what: string): void {
  try {
    createSecureContext(options)
  } catch (cause) {
    throw fault(`${what} cannot be used (${(cause as Error).message}): make new ones`, cause)
  }
}

function* validityWarnings(certificate: X509Certificate, path: string, now: number): Generator<string> {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (to < now) yield `${path} expired on ${dayOf(to)} (${nameOf(certificate)}): renew it`
  else if (from > now) yield `${path} is not valid before ${dayOf(from)} (${nameOf(certificate)}): check the clock`
}

/** Warns of certificates that are not followed by that of their issuer, up to one that callers know. */
export function* chainWarnings(certificates: readonly X509Certificate[], path: string): Generator<string> {
  for (const [index, certificate] of certificates.entries()) {
    if (certificate.checkIssued(certificate)) return
    const issuer = certificates[index + 1]
    if (issuer === undefined) {
      if (isKnownRoot(certificate)) return
      const name = certificate.issuer.replaceAll('\n', ', ')
      yield `${path} ends without the certificate of its issuer (${name}): append it, unless callers have it as a root`
    } else if (!certificate.checkIssued(issuer)) {
      const remedy = 'each certificate must be followed by that of its issuer'
      yield `${path} holds ${nameOf(certificate)} before ${nameOf(issuer)}, which did not issue it: ${remedy}`
      return
    }
  }
}

function isKnownRoot(certificate: X509Certificate): boolean {
  return rootCertificates.some(root => certificate.checkIssued(new X509Certificate(root)))
}

function nameOf({ subject, fingerprint256 }: X509Certificate): string {
  return subject?.replaceAll('\n', ', ') || fingerprint256
}

function dayOf(moment: number): string {
  return new Date(moment).toISOString().slice(0, 10)
}

function fault(message: string, cause?: unknown): DianaError {
  return new DianaError('BAD_RULES', message, { cause })
}
