import type { TLSSocket } from 'node:tls'
import { verifiedCertificate } from 'diana-limiter/words'
import type { FastifyRequest } from 'fastify'
import type { ClientCertificateSettings } from '../settings/tls-settings.ts'

/**
 * Writes the verified certificate of the caller into `Client-Cert` (RFC 9440) if services are to get it. What a caller
 * writes there itself is dropped in any case.
 */
export function writeClientCert({ raw }: FastifyRequest, { forward }: ClientCertificateSettings): void {
  const { headers } = raw
  delete headers['client-cert']
  delete headers['client-cert-chain']
  if (!forward) return
  const certificate = verifiedCertificate(raw.socket as TLSSocket)
  // a byte sequence (RFC 8941, section 3.3.5)
  if (certificate) headers['client-cert'] = `:${certificate.raw.toString('base64')}:`
}
