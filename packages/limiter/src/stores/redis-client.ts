import type { Cluster, Redis } from 'ioredis'
import { DianaError } from '../errors.ts'
import { warnOnce } from '../warn-once.ts'
import type { SendCommand } from './redis.ts'

/** An ioredis client of the application's own, single or Cluster. */
export interface IoredisClient {
  call(command: string, ...args: string[]): Promise<unknown>
  readonly isCluster?: boolean
}

/** A node-redis client of the application's own; a cluster's is told the key to route by. */
export interface NodeRedisClient {
  sendCommand(...args: never[]): Promise<unknown>
  readonly masters?: unknown
  /** Whether connect() was called. */
  readonly isOpen?: boolean
}

/** Where to count: a URL, the URLs of a Cluster's nodes, a client, or a function that sends a command. */
export type RedisTarget = string | readonly string[] | IoredisClient | NodeRedisClient | SendCommand

/** A way to Redis; `close` ends only what Diana opened herself. */
export interface RedisConnection {
  readonly send: SendCommand
  readonly isCluster: boolean
  close(): void
  /** Opens the way anew, since it may be dead without anybody having said so; none where it is the application's. */
  reconnect?(): void
  /** Why it is closed, where it is. */
  lastError?(): unknown
}

const leaveOpen = (): void => {}

/** Opens a way to Redis, or takes the one it is given. Does not wait until it is open: until then commands fail. */
export async function connectRedis(target: RedisTarget): Promise<RedisConnection> {
  if (typeof target === 'function') return { send: target, isCluster: false, close: leaveOpen }
  if (typeof target === 'string') return ofIoredis(await openSingle(target))
  if (Array.isArray(target)) return ofIoredis(await openCluster(target))
  const client = target as Partial<IoredisClient & NodeRedisClient> | null | undefined
  if (typeof client?.call === 'function') return { ...overCall(client as IoredisClient), close: leaveOpen }
  if (typeof client?.sendCommand === 'function') return overSendCommand(client as NodeRedisClient)
  throw unusable()
}

function unusable(): DianaError {
  return new DianaError(
    'BAD_RULES',
    'store.redis must be a URL such as redis://127.0.0.1:6379, the path of a socket, a list of the URLs of a Cluster, ' +
      'an ioredis or node-redis client, or a function that sends a command',
  )
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url?.hostname || !['redis:', 'rediss:'].includes(url.protocol)) throw unusable()
  return url
}

function overCall(client: IoredisClient): Omit<RedisConnection, 'close'> {
  return {
    send: ([command, ...args]) => client.call(command!, ...args),
    isCluster: client.isCluster ?? false,
  }
}

function overSendCommand(client: NodeRedisClient): RedisConnection {
  if (client.isOpen === false) warnOnce('DIANA_STORE_NOT_CONNECTED')
  if (client.masters === undefined) {
    const send = client.sendCommand.bind(client) as unknown as SendCommand
    return { send: command => send(command), isCluster: false, close: leaveOpen }
  }
  type SendByKey = (key: string, isReadonly: boolean, command: readonly string[]) => Promise<unknown>
  const send = client.sendCommand.bind(client) as unknown as SendByKey
  return { send: command => send(firstKey(command), false, command), isCluster: true, close: leaveOpen }
}

/** The key a command is routed by: EVAL and EVALSHA name their keys after the script and their number. */
function firstKey(command: readonly string[]): string {
  return command[0]!.startsWith('EVAL') ? command[3]! : command[1]!
}

function ofIoredis(client: Redis | Cluster): RedisConnection {
  let lastError: unknown
  // without a listener it would be thrown
  client.on('error', error => {
    lastError = error
  })
  client.on('ready', () => {
    lastError = undefined
  })
  return {
    ...overCall(client as unknown as IoredisClient),
    close: () => client.disconnect(),
    reconnect: () => client.disconnect(true),
    lastError: () => lastError,
  }
}

/**
 * A command is sent at once or fails at once, and is never sent twice: what waits in a client's queue while the server
 * is away would be counted when nobody waits for it any more.
 */
const SAFE = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1000,
  retryStrategy: (attempt: number): number => backOff(attempt) * (0.5 + Math.random() / 2),
  reconnectOnError: (error: Error): boolean => error.message.startsWith('READONLY'),
}

function backOff(attempt: number): number {
  return Math.min(400, 50 * 2 ** Math.min(attempt, 5))
}

/** `redis://user:password@host:6379/0`, `rediss://` for TLS, a socket's path, or `redis+sentinel://a:26379,b:26379/name`. */
async function openSingle(url: string): Promise<Redis> {
  const { Redis: Client } = await importIoredis()
  const sentinel = /^redis\+sentinel:\/\/(?:([^@/]*)@)?([^/]+)\/([^/?]+)(?:\/(\d+))?$/.exec(url)
  if (!sentinel) {
    if (!url.startsWith('/')) parseUrl(url)
    return new Client(url, SAFE)
  }
  const [, credentials, hosts, name, db] = sentinel
  const [username, password] = (credentials ?? '').split(':').map(decodeURIComponent)
  return new Client({
    ...SAFE,
    sentinels: hosts!.split(',').map(hostAndPort),
    name: name!,
    db: Number(db ?? 0),
    ...(username ? { username } : {}),
    ...(password ? { password } : {}),
  })
}

async function openCluster(urls: readonly string[]): Promise<Cluster> {
  const { Cluster: Client } = await importIoredis()
  const nodes = urls.map(parseUrl)
  if (!nodes[0]) throw unusable()
  const { username, password, protocol } = nodes[0]
  const { connectTimeout, maxRetriesPerRequest, reconnectOnError } = SAFE
  const redisOptions = {
    ...{ connectTimeout, maxRetriesPerRequest, reconnectOnError },
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
    ...(protocol === 'rediss:' ? { tls: {} } : {}),
  }
  return new Client(
    nodes.map(({ host }) => hostAndPort(host)),
    {
      enableOfflineQueue: false,
      redisOptions,
      slotsRefreshTimeout: 1000,
      retryDelayOnClusterDown: 100,
      clusterRetryStrategy: backOff,
    },
  )
}

function hostAndPort(text: string): { host: string; port: number } {
  const colon = text.lastIndexOf(':')
  if (colon < 0 || text.endsWith(']')) return { host: text, port: 6379 }
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) }
}

async function importIoredis(): Promise<Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>> {
  try {
    const { Redis, Cluster } = await import('ioredis')
    return { Redis, Cluster }
  } catch (cause) {
    throw new DianaError('BAD_RULES', 'store.redis needs the ioredis package; run: npm install ioredis', { cause })
  }
}
