import { createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** An issuer of tokens on this machine. */
export interface FakeIssuer {
  readonly url: string
  /** Requests that it got. */
  readonly asked: string[]
  /** What it answers at `/keys`; undefined for an answer that never comes. */
  keys: unknown
  /** Adds a key under a new name. */
  rotate(): void
  /** A token with these claims, valid for an hour unless they say otherwise. */
  tokenOf(claims: object, head?: object, key?: KeyObject | string): string
  close(): Promise<void>
}

export async function startIssuer(): Promise<FakeIssuer> {
  const asked: string[] = []
  let count = 0
  let pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const server = createServer((request, response) => {
    asked.push(request.url ?? '')
    if (request.url === '/.well-known/openid-configuration') {
      response.end(JSON.stringify({ issuer: issuer.url, jwks_uri: `${issuer.url}/keys` }))
    } else if (request.url === '/keys' && issuer.keys !== undefined) response.end(JSON.stringify(issuer.keys))
    else if (request.url !== '/keys') response.writeHead(302, { location: `${issuer.url}/keys` }).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer: FakeIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    keys: undefined,
    rotate() {
      pair = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
      issuer.keys = { keys: [{ ...pair.publicKey.export({ format: 'jwk' }), kid: `key-${++count}`, use: 'sig' }] }
    },
    tokenOf(claims, head = {}, key = pair.privateKey) {
      const body = { iss: issuer.url, aud: 'diana', exp: Math.floor(Date.now() / 1000) + 3600, ...claims }
      const signed = `${part({ alg: 'ES256', typ: 'JWT', kid: `key-${count}`, ...head })}.${part(body)}`
      const signature =
        typeof key === 'string'
          ? createHmac('sha256', key).update(signed).digest()
          : sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' })
      return `${signed}.${signature.toString('base64url')}`
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  issuer.rotate()
  return issuer
}
