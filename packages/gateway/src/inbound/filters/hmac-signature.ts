import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { hmacSignatureOptions } from '../../settings/routes/filter-options.ts'
import { readSecret } from '../../settings/secret.ts'
import { sendProblem } from '../problem.ts'
import type { Filter } from './filter.ts'
import { onRequest } from './filter.ts'
import { Nonces } from './nonces.ts'
import { BodyReader } from './read-body.ts'

interface Options {
  readonly secrets: Readonly<Record<string, string>>
  readonly window: number
  readonly body: number
  readonly nonces: number
}

interface Signer {
  readonly secret: Buffer
  readonly nonces: Nonces
}

interface Signed {
  readonly keyId: string
  readonly timestamp: string
  readonly nonce: string
  readonly signature: Buffer
}

/**
 * Lets only those calls pass that were signed with a secret, lately, and not before. What is signed, each on a line:
 *
 *     METHOD
 *     target, as it was sent
 *     x-signature-timestamp   seconds since 1970
 *     x-signature-nonce       16 to 64 letters and digits, another one each time
 *     SHA-256 of the body, in hexadecimal digits
 *
 * `x-signature` is the HMAC-SHA-256 of these lines in hexadecimal digits, `x-signature-key` names the secret.
 */
export const hmacSignature: Filter = {
  name: 'hmac-signature',
  options: hmacSignatureOptions,
  create(options, { folder, now }) {
    const { secrets, window, body, nonces: most } = options as unknown as Options
    const signers = new Map<string, Signer>()
    for (const [keyId, words] of Object.entries(secrets)) {
      // a timestamp may be ahead by one window, and is good until one window has passed
      const nonces = new Nonces({ keepMs: 2 * window, most })
      signers.set(keyId, { secret: readSecret(words, keyId, folder), nonces })
    }
    const bodies = new BodyReader(body)
    return onRequest('hmac-signature', async (request, reply) => {
      const signed = readSigned(request)
      if (signed === undefined || Math.abs(now() - Number(signed.timestamp) * 1000) > window) return refuse(reply)
      const signer = signers.get(signed.keyId)
      // before the body: names of secrets are no secrets, and no caller may have bodies held without one
      if (signer === undefined) return refuse(reply)
      const bytes = await bodies.read(request, reply)
      if (bytes === 'gone') return reply.hijack()
      if (bytes === 'too large') {
        return sendProblem(reply.header('connection', 'close'), 413, 'The body of this call is too large.')
      }
      if (bytes === 'no room') {
        const busy = reply.headers({ connection: 'close', 'retry-after': '1' })
        return sendProblem(busy, 503, 'Too many bodies are being checked at this moment; try again later.')
      }
      if (!timingSafeEqual(sign(signer.secret, request, signed, bytes), signed.signature)) return refuse(reply)
      switch (signer.nonces.take(signed.nonce, now())) {
        case 'used':
          return refuse(reply)
        case 'full':
          return sendProblem(reply, 503, 'Too many calls were signed with this secret lately; try again later.')
        case 'new':
          return undefined
      }
    })
  },
}

function readSigned({ headers }: FastifyRequest): Signed | undefined {
  const keyId = headers['x-signature-key']
  const timestamp = headers['x-signature-timestamp']
  const nonce = headers['x-signature-nonce']
  const signature = headers['x-signature']
  if (typeof keyId !== 'string' || typeof timestamp !== 'string' || typeof nonce !== 'string') return undefined
  if (typeof signature !== 'string' || !/^[\da-f]{64}$/i.test(signature)) return undefined
  if (!/^\d{1,12}$/.test(timestamp) || !/^[\w-]{16,64}$/.test(nonce)) return undefined
  return { keyId, timestamp, nonce, signature: Buffer.from(signature, 'hex') }
}

function sign(secret: Buffer, { method, originalUrl }: FastifyRequest, signed: Signed, body: Buffer): Buffer {
  const digest = createHash('sha256').update(body).digest('hex')
  const lines = [method, originalUrl, signed.timestamp, signed.nonce, digest]
  return createHmac('sha256', secret).update(lines.join('\n'), 'latin1').digest()
}

function refuse(reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', 'HMAC-SHA-256')
  return sendProblem(reply, 401, 'This call is not signed as it must be, or was sent before.')
}
