import { warnOnce } from '../../../common/warn-once.ts'
import type { SendCommand } from '../send-command.ts'
import { type Opened, openCluster, openSingle, unusable } from './open.ts'

/** An ioredis client of the application's own, single or Cluster. */
export interface IoredisClient {
  call(command: string, ...args: string[]): Promise<unknown>
  readonly isCluster?: boolean
  /** The nodes of a Cluster. */
  nodes?(role: 'master'): readonly { call(command: string, ...args: string[]): Promise<unknown> }[]
}

/** A node-redis client of the application's own; a cluster's needs the key to route by. */
export interface NodeRedisClient {
  sendCommand(...args: never[]): Promise<unknown>
  readonly masters?: unknown
  /** The client of one node of a Cluster. */
  nodeClient?(node: never): unknown
  /** Whether connect() was called. */
  readonly isOpen?: boolean
}

/** Where to count: a URL, the URLs of a Cluster's nodes, a client, or a function that sends a command. */
export type RedisTarget = string | readonly string[] | IoredisClient | NodeRedisClient | SendCommand

/** A connection to Redis; `close` ends only clients that Diana opened. */
export interface RedisConnection {
  readonly send: SendCommand
  readonly isCluster: boolean
  /** The masters of a Cluster; left out if the client cannot address them. */
  readonly masters?: () => readonly SendCommand[]
  close(): void
  /** Learns the nodes of a Cluster again, which may be others by now; only of one that Diana opened. */
  reconnect?(): void
  /** Calls the listener whenever a new connection can be used; only of one that Diana opened. */
  onReady?(listener: () => void): void
  /** Calls the listener whenever a connection is lost; only of a single Redis that Diana opened. */
  onLost?(listener: () => void): void
  /** Why it is closed, if it is. */
  lastError?(): unknown
  /** True if a connection was ready before. */
  hasWorked?(): boolean
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

function overCall(client: IoredisClient): Omit<RedisConnection, 'close'> {
  return {
    send: overNode(client),
    isCluster: client.isCluster ?? false,
    ...(client.isCluster && client.nodes && { masters: () => client.nodes!('master').map(overNode) }),
  }
}

function overNode(node: Pick<IoredisClient, 'call'>): SendCommand {
  return command => node.call(...(command as [string, ...string[]]))
}

function overSendCommand(client: NodeRedisClient): RedisConnection {
  if (client.isOpen === false) warnOnce('DIANA_STORE_NOT_CONNECTED')
  if (client.masters === undefined) {
    const send = client.sendCommand.bind(client) as unknown as SendCommand
    return { send: command => send(command), isCluster: false, close: leaveOpen }
  }
  type SendByKey = (key: string, isReadonly: boolean, command: readonly string[]) => Promise<unknown>
  const send = client.sendCommand.bind(client) as unknown as SendByKey
  const connection = { isCluster: true, close: leaveOpen }
  if (!client.nodeClient) return { ...connection, send: command => send(firstKey(command), false, command) }
  const masters = (): SendCommand[] => (client.masters as never[]).map(master => overNodeRedis(client, master))
  return {
    ...connection,
    send: command => send(firstKey(command), false, command),
    masters,
  }
}

function overNodeRedis(client: NodeRedisClient, master: never): SendCommand {
  return async command => {
    const node = (await client.nodeClient!(master)) as { sendCommand(command: readonly string[]): Promise<unknown> }
    return node.sendCommand(command)
  }
}

/** The key a command is routed by: scripts and functions name their keys after their own name and the number of keys. */
function firstKey(command: readonly string[]): string {
  return /^(?:EVAL|FCALL)/.test(command[0]!) ? command[3]! : command[1]!
}

function ofIoredis({ client, lastError, hasWorked, isBarred }: Opened): RedisConnection {
  const { send, ...connection } = overCall(client as unknown as IoredisClient)
  return {
    ...connection,
    send: command => (isBarred() ? Promise.reject(lastError()) : send(command)),
    close: () => client.disconnect(),
    ...(client.isCluster ? { reconnect: () => client.disconnect(true) } : {}),
    onReady: listener => client.on('ready', listener),
    ...(client.isCluster ? {} : { onLost: (listener: () => void) => client.on('close', listener) }),
    lastError,
    hasWorked,
  }
}
