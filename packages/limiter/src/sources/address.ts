import { DianaError } from '../errors.ts'
import { joinNames } from '../rules/show.ts'

/** The address of a config center, without credentials. */
export interface Address {
  /** Never with credentials. */
  readonly url: URL
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly token?: string | undefined
  /** The secrets, which no message may show. */
  readonly secrets: readonly string[]
}

interface Credentials {
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly token?: string | undefined
}

/** Reads an address; credentials come from the options beside it, from the address, or from the environment. */
export function parseAddress(
  text: string,
  options: Credentials,
  schemes: readonly string[] = ['http:', 'https:'],
): Address {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !schemes.includes(url.protocol) || url.host === '') {
    const starts = joinNames(schemes.map(scheme => `${scheme}//`))
    throw new DianaError('BAD_RULES', `must be a URL that begins with ${starts}, such as ${schemes[0]}//127.0.0.1`)
  }
  const { env } = process
  const username = options.username ?? (decode(url.username) || env.DIANA_REMOTE_USERNAME)
  const password = options.password ?? (decode(url.password) || env.DIANA_REMOTE_PASSWORD)
  const token = options.token ?? env.DIANA_REMOTE_TOKEN
  url.username = ''
  url.password = ''
  url.hash = ''
  return { url, username, password, token, secrets: [password, token].filter(secret => secret !== undefined) }
}

/** Returns the address for people; its query is left out, since some put secrets there. */
export function showAddress(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/$/, '')}`
}

/** Returns a path below an address, with the address's own query kept. */
export function below(url: URL, path: string, query: Readonly<Record<string, string>> = {}): URL {
  const whole = new URL(url)
  whole.pathname = url.pathname.replace(/\/$/, '') + path
  for (const [name, value] of Object.entries(query)) whole.searchParams.set(name, value)
  return whole
}

/** Returns the Authorization header of HTTP Basic, if there is a user. */
export function basicHeader({ username, password }: Credentials): Record<string, string> {
  if (username === undefined) return {}
  return { authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
