import { randomBytes } from 'node:crypto'

const body = 'b'.repeat(200_000)

/** Calls signed with keys that the gateway does not know, with bodies that would have to be read to check them. */
export const unknownHmacKeys = {
  name: 'unknown HMAC keys',
  connections: 8,
  filter: 'hmac',
  steps: () => {
    const lines = [
      'POST /signed HTTP/1.1',
      'Host: fuzz.example',
      `X-Signature-Key: k${randomBytes(4).toString('hex')}`,
      `X-Signature-Timestamp: ${Math.floor(Date.now() / 1000)}`,
      `X-Signature-Nonce: ${randomBytes(16).toString('hex')}`,
      `X-Signature: ${randomBytes(32).toString('hex')}`,
      `Content-Length: ${body.length}`,
    ]
    return [{ write: `${lines.join('\r\n')}\r\n\r\n${body}` }, { pause: 300 }, 'close']
  },
  judge: ({ statuses }) => (statuses.has('200') ? 'a call with an unknown key passed' : undefined),
}
