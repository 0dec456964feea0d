/** The default prefix of every key; `store.prefix` changes it. */
export const DEFAULT_PREFIX = 'diana'
const PREFIX = /^[A-Za-z0-9._:/-]{1,64}$/

/** Returns what is wrong with a prefix of keys in Redis, if anything. */
export function prefixFault(prefix: string): string | undefined {
  if (PREFIX.test(prefix)) return undefined
  return 'must be 1 to 64 letters, digits, dots, colons, slashes, underscores or hyphens, such as shop'
}

/** Returns what is wrong with the address of a Redis: a URL, `redis+sentinel://host:26379,host:26379/name`, or the path of a socket. */
export function redisAddressFault(text: string): string | undefined {
  if (text.startsWith('/') || /^redis\+sentinel:\/\/[^/]+\/[^/]+/.test(text)) return databaseFault(text)
  if (/^rediss?:\/\//.test(text) && URL.canParse(text) && new URL(text).host !== '') return databaseFault(text)
  return 'must be a URL that begins with redis:// or rediss://, such as redis://127.0.0.1'
}

/** Returns what is wrong with the database of a Redis URL, if anything: it must be a number, or nothing. */
export function databaseFault(url: string): string | undefined {
  if (!URL.canParse(url) || !/^rediss?:/.test(url)) return undefined
  const { pathname, searchParams } = new URL(url)
  const database = searchParams.get('db') ?? pathname.replace(/^\/+/, '')
  if (/^\d{0,6}$/.test(database)) return undefined
  return 'must end with the number of a database or nothing, such as redis://127.0.0.1/0'
}
