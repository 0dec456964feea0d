import type { Cluster, Redis } from 'ioredis'
import { importIoredis } from '../../../common/import-ioredis.ts'
import { databaseFault } from '../../../common/redis-url.ts'
import { DianaError } from '../../../errors.ts'
import { RedisConnector } from './connector.ts'
import { endWhenSilent } from './silence-watch.ts'

/** A client that Diana has opened, and why it cannot be used at this moment. */
export interface Opened {
  readonly client: Redis | Cluster
  lastError(): unknown
  /** True if a connection was ready before. */
  hasWorked(): boolean
  /** Whether it is connected and must not be used. */
  isBarred(): boolean
}

export function unusable(): DianaError {
  return new DianaError(
    'BAD_RULES',
    'store.redis must be a URL such as redis://127.0.0.1:6379, the path of a socket, a list of the URLs of a Cluster, ' +
      'an ioredis or node-redis client, or a function that sends a command',
  )
}

/**
 * A command is sent at once or fails at once, and is never sent twice: what waits in a client's queue while the server
 * is away would be counted after the caller has given up.
 */
const SAFE = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1000,
  disconnectTimeout: 100,
  sentinelCommandTimeout: 500,
  sentinelRetryStrategy: backOff,
  reconnectOnError: (error: Error): boolean => error.message.startsWith('READONLY'),
}
/** How long a silent connection is kept before it is replaced, since the server may be back already. */
const SILENT_RETRY_MS = 50

function backOff(attempt: number): number {
  return Math.min(400, 50 * 2 ** Math.min(attempt, 5))
}

/** `redis://user:password@host:6379/0`, `rediss://` for TLS, a socket's path, or `redis+sentinel://a:26379,b:26379/name`. */
export async function openSingle(url: string): Promise<Opened> {
  const { Redis: Client } = await loadIoredis()
  let wasSilent = false
  let connector: RedisConnector | undefined
  const options = {
    ...SAFE,
    retryStrategy: (attempt: number): number => {
      const ms = wasSilent ? SILENT_RETRY_MS : backOff(attempt)
      wasSilent = false
      return ms * (0.5 + Math.random() / 2)
    },
  }
  class Connector extends RedisConnector {
    constructor(place: unknown) {
      super(place)
      connector = this
    }
  }
  const client = createSingle(Client, url, { ...options, Connector: Connector as never })
  client.on('connect', () => {
    endWhenSilent(client.stream as never, () => {
      wasSilent = true
    })
  })
  return { client, ...watchErrors(client, () => connector?.pending) }
}

/** The last error of a client until it is ready; one that could not select its database is never ready. */
function watchErrors(client: Redis | Cluster, pending: () => unknown = () => undefined): Omit<Opened, 'client'> {
  let last: unknown
  let hasWorked = false
  let selectError: Error | undefined
  client.on('error', (error: Error) => {
    last = error
    if (isDatabaseError(error)) selectError = error
  })
  // without its own database it would count in database 0
  client.on('ready', () => {
    last = selectError
    hasWorked = selectError === undefined
    if (selectError) client.disconnect(true)
    selectError = undefined
  })
  return { lastError: () => pending() ?? last, hasWorked: () => hasWorked, isBarred: () => isDatabaseError(last) }
}

function isDatabaseError(error: unknown): boolean {
  return error instanceof Error && /DB index is out of range|invalid DB index/i.test(error.message)
}

type SingleOptions = typeof SAFE & { readonly retryStrategy: (attempt: number) => number; readonly Connector: never }

function createSingle(Client: typeof Redis, url: string, options: SingleOptions): Redis {
  const sentinel = /^redis\+sentinel:\/\/(?:([^@/]*)@)?([^/]+)\/([^/?]+)(?:\/(\d+))?$/.exec(url)
  if (!sentinel) {
    if (!url.startsWith('/')) parseUrl(url)
    return new Client(url, options)
  }
  const [, credentials, hosts, name, db] = sentinel
  const [username, password] = (credentials ?? '').split(':').map(decodeURIComponent)
  const { Connector: _, ...rest } = options
  return new Client({
    ...rest,
    sentinels: hosts!.split(',').map(hostAndPort),
    name: name!,
    db: Number(db ?? 0),
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  })
}

export async function openCluster(urls: readonly string[]): Promise<Opened> {
  const { Cluster: Client } = await loadIoredis()
  const nodes = urls.map(parseUrl)
  if (!nodes[0]) throw unusable()
  const { username, password, protocol } = nodes[0]
  const { connectTimeout, maxRetriesPerRequest, reconnectOnError } = SAFE
  const redisOptions = {
    ...{ connectTimeout, maxRetriesPerRequest, reconnectOnError, Connector: RedisConnector as never },
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  }
  const client = new Client(
    nodes.map(({ host }) => hostAndPort(host)),
    {
      enableOfflineQueue: false,
      redisOptions,
      slotsRefreshTimeout: 1000,
      retryDelayOnClusterDown: 100,
      clusterRetryStrategy: backOff,
    },
  )
  client.on('+node', (node: Redis) => {
    node.on('connect', () => endWhenSilent(node.stream as never, () => {}))
  })
  return { client, ...watchErrors(client) }
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url?.hostname || !['redis:', 'rediss:'].includes(url.protocol)) throw unusable()
  const fault = databaseFault(text)
  if (fault) throw new DianaError('BAD_RULES', `store.redis ${fault}`)
  return url
}

function hostAndPort(text: string): { host: string; port: number } {
  const colon = text.lastIndexOf(':')
  if (colon < 0 || text.endsWith(']')) return { host: text, port: 6379 }
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

async function loadIoredis(): ReturnType<typeof importIoredis> {
  return await importIoredis().catch(({ message, cause }: Error) => {
    throw new DianaError('BAD_RULES', `store.redis ${message}`, { cause })
  })
}
