import type { IncomingMessage, RequestListener } from 'node:http'
import type { TLSSocket } from 'node:tls'
import { verifiedCertificate } from 'diana-limiter/gateway'
import type { ClientCertificateSettings } from '../../settings/tls-settings.ts'

/**
 * Writes the verified certificate of each caller into `Client-Cert` (RFC 9440) if services are to get it, before anything
 * reads the headers. What a caller writes there itself is dropped wherever certificates are verified.
 */
export function withClientCert(
  listener: RequestListener,
  settings: ClientCertificateSettings | undefined,
): RequestListener {
  if (settings === undefined) return listener
  return (request, response) => {
    writeClientCert(request, settings)
    listener(request, response)
  }
}

function writeClientCert({ headers, socket }: IncomingMessage, { forward }: ClientCertificateSettings): void {
  delete headers['client-cert']
  delete headers['client-cert-chain']
  const certificate = forward ? verifiedCertificate(socket as TLSSocket) : undefined
  // a byte sequence (RFC 8941, section 3.3.5)
  if (certificate) headers['client-cert'] = `:${certificate.raw.toString('base64')}:`
}
