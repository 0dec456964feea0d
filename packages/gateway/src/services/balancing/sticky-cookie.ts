import { createHmac, randomBytes } from 'node:crypto'

/** The variable that workers are given the secret by, and operators several gateways. */
export const stickySecretVariable = 'DIANA_STICKY_SECRET'

const bytes = 12
const value = /^([\w-]{16})\.([\w-]{16})$/

let secret: string | Buffer | undefined

/** Stands for an address in cookies: without the secret, no caller can find which address it is. */
export function tagOf(address: string): string {
  secret ??= process.env[stickySecretVariable] || randomBytes(32)
  return createHmac('sha256', secret).update(address).digest().subarray(0, bytes).toString('base64url')
}

/** Makes a secret for processes that this one starts, unless there is one. */
export function shareStickySecret(environment: NodeJS.ProcessEnv = process.env): void {
  environment[stickySecretVariable] ||= randomBytes(32).toString('base64url')
}

export function newStickyId(): string {
  return randomBytes(bytes).toString('base64url')
}

/** Returns the first value of a cookie that is not empty. */
export function readCookie(header: string | undefined, name: string): string | undefined {
  return firstValue(header, name, text => (text === '' ? undefined : text))
}

/** Reads a cookie that the gateway has set; undefined for every other value. */
export function readStickyCookie(
  header: string | undefined,
  name: string,
): { readonly id: string; readonly tag: string } | undefined {
  return firstValue(header, name, text => {
    const [, id, tag] = value.exec(text) ?? []
    return id === undefined || tag === undefined ? undefined : { id, tag }
  })
}

export function writeStickyCookie(cookie: {
  readonly name: string
  readonly id: string
  readonly tag: string
  readonly path: string
  readonly maxAgeMs?: number | undefined
  readonly isSecure: boolean
}): string {
  const { name, id, tag, path, maxAgeMs, isSecure } = cookie
  const age = maxAgeMs === undefined ? '' : `; Max-Age=${Math.ceil(maxAgeMs / 1000)}`
  return `${name}=${id}.${tag}; Path=${path}${age}; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}`
}

function firstValue<Read>(
  header: string | undefined,
  name: string,
  read: (text: string) => Read | undefined,
): Read | undefined {
  for (const pair of header?.split(';') ?? []) {
    const equals = pair.indexOf('=')
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
    const found = read(pair.slice(equals + 1).trim())
    if (found !== undefined) return found
  }
  return undefined
}
