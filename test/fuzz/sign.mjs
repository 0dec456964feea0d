import { createHash, createHmac, randomUUID } from 'node:crypto'

export const hmacSecret = 'a secret of the fuzzed gateway'

const emptyDigest = createHash('sha256').update('').digest('hex')

/** The headers of a signed GET of a target, good once. */
export function signGet(target) {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const nonce = randomUUID()
  const lines = ['GET', target, timestamp, nonce, emptyDigest].join('\n')
  return {
    'x-signature-key': 'fuzz',
    'x-signature-timestamp': timestamp,
    'x-signature-nonce': nonce,
    'x-signature': createHmac('sha256', hmacSecret).update(lines).digest('hex'),
  }
}
