import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { Refusal } from './refusal.ts'

export interface GuardOptions {
  readonly token?: string | undefined
  /** Names by which the admin API may be called, besides addresses and localhost. */
  readonly hosts?: readonly string[] | undefined
}

/**
 * Lets in who may come in, or throws. A web page elsewhere must not reach the API through the operator's browser: not by its
 * own name that resolves to this machine (DNS rebinding: the Host is checked), nor by a request across origins (Origin and
 * Sec-Fetch-Site are). There are no cookies, so nothing is sent along by itself.
 */
export function createGuard({ token, hosts = [] }: GuardOptions): (request: FastifyRequest) => void {
  const names = new Set(['localhost', ...hosts.map(name => name.toLowerCase())])
  const expected = token === undefined ? undefined : digest(token)
  return ({ headers, url }) => {
    const host = headers.host ?? ''
    if (!isOwnHost(host, names)) {
      throw new Refusal(
        403,
        'This name is not known here: call the admin API by its address, or list the name under hosts.',
      )
    }
    const { origin } = headers
    if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) {
      throw new Refusal(403, 'The admin API answers no pages of another origin.')
    }
    const site = headers['sec-fetch-site']
    const isApi = /^\/api(?:[/?]|$)/.test(url)
    if (isApi && site !== undefined && site !== 'same-origin' && site !== 'none') {
      throw new Refusal(403, 'The admin API answers no pages of another origin.')
    }
    if (!isApi || expected === undefined) return
    const given = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '')?.[1]
    if (given === undefined) throw new Refusal(401, 'Say the token: Authorization: Bearer …')
    // digests have one length, so that comparing them tells nothing of the token's
    if (!timingSafeEqual(digest(given), expected)) throw new Refusal(401, 'This is not the token.')
  }
}

function isOwnHost(host: string, names: ReadonlySet<string>): boolean {
  const name = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(host)?.[1]?.toLowerCase()
  if (name === undefined || name === '') return false
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || names.has(name)
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Whether an address is reached from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
