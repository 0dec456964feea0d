import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { ClientCertificate } from '../call.ts'

/** The parts of a client certificate that rules can count by. */
export const certificateParts: readonly (keyof ClientCertificate)[] = [
  'subject',
  'cn',
  'uri',
  'dns',
  'email',
  'fingerprint',
]

const known = new WeakMap<object, ClientCertificate | undefined>()

/** Returns the certificate of the other end of a connection, if the server has verified it; undefined for every other connection. */
export function clientCertificateOf(socket: Socket | undefined): ClientCertificate | undefined {
  if (socket === undefined || !('encrypted' in socket)) return undefined
  if (known.has(socket)) return known.get(socket)
  const certificate = verifiedCertificate(socket as TLSSocket)
  const parts = certificate && partsOf(certificate)
  known.set(socket, parts)
  return parts
}

/**
 * Returns the certificate of a verified connection; a resumed session counts as authorized even if it never had a certificate, so
 * both are needed.
 */
export function verifiedCertificate(socket: TLSSocket): X509Certificate | undefined {
  return socket.authorized ? socket.getPeerX509Certificate() : undefined
}

function partsOf(certificate: X509Certificate): ClientCertificate {
  const subject = certificate.subject?.split('\n')
  const alternatives = alternativeNames(certificate.subjectAltName ?? '')
  const namesOf = (kind: string): string | undefined =>
    joined(alternatives.filter(([known]) => known === kind).map(([, name]) => name))
  return {
    subject: joined(subject ?? []),
    cn: joined((subject ?? []).filter(line => line.startsWith('CN=')).map(line => line.slice(3))),
    uri: namesOf('URI'),
    dns: namesOf('DNS'),
    email: namesOf('email'),
    fingerprint: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
  }
}

function joined(names: readonly string[]): string | undefined {
  return names.length === 0 ? undefined : names.join(', ')
}

/** Splits names, which Node separates by commas; it writes a name as a JSON string if a comma in it could be taken for a separator. */
export function alternativeNames(text: string): [kind: string, name: string][] {
  const entries = text.matchAll(/(?:^|, )([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)/g)
  return [...entries].map(([, kind, name]) => [kind!, name!.startsWith('"') ? (JSON.parse(name!) as string) : name!])
}
