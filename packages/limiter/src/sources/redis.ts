import type { Redis, RedisOptions } from 'ioredis'
import { importIoredis } from '../common/import-ioredis.ts'
import { DianaError } from '../errors.ts'
import { parseAddress, showAddress } from './address.ts'
import { changes } from './client/changes.ts'
import { pause, Wakeup } from './client/pause.ts'
import { decodeText, hashText, LARGEST_BYTES } from './client/text.ts'
import { TIMEOUT_MS, within } from './client/within.ts'
import { conflict, writeGuarded } from './client/write-guarded.ts'
import { credentialOptions, durationOption, nameOption } from './options.ts'
import type { Source, SourceDocument, SourceKind } from './source.ts'
import { sourceKind } from './source.ts'

type RedisEndpoint = Pick<RedisOptions, 'host' | 'port' | 'db' | 'tls' | 'username' | 'password'>

/** A string in Redis, read when a message reports a change, and periodically. */
export const redis: SourceKind = sourceKind({
  name: 'redis',
  options: kit => ({
    key: nameOption(kit).describe('the key that holds the document'),
    channel: nameOption(kit).optional().describe('where changes are published; default: the key and :changed'),
    interval: durationOption(kit, '30s', { least: '100ms', most: '1h' }).describe(
      'how often to read anyway; default: 30s',
    ),
    username: credentialOptions(kit).username,
    password: credentialOptions(kit).password,
  }),
  create(address, options): Source {
    const { url, secrets, username, password } = parseAddress(address, options, ['redis:', 'rediss:'])
    if (!/^\/?\d{0,5}$/.test(url.pathname)) {
      throw new DianaError(
        'BAD_RULES',
        'must end with the number of a database or nothing, such as redis://127.0.0.1/0',
      )
    }
    const { key, channel = `${key}:changed`, interval } = options
    const name = `redis ${showAddress(url)} ${key}`
    const endpoint: RedisEndpoint = {
      host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: Number(url.port || 6379),
      db: Number(url.pathname.slice(1)),
      tls: url.protocol === 'rediss:' ? {} : undefined,
      username,
      password,
    }

    async function* readings(signal: AbortSignal): AsyncGenerator<SourceDocument> {
      const wakeup = new Wakeup()
      let failure: Error | undefined
      const fail = (error: Error) => {
        failure ??= error
        wakeup.wake()
      }
      const reader = await createClient(endpoint, fail)
      const listener = await createClient(endpoint, fail)
      const close = () => {
        // closing a closed connection would leave a timer of two seconds
        for (const client of [reader, listener]) if (client.status !== 'end') client.disconnect()
      }
      signal.addEventListener('abort', close)
      try {
        listener.on('message', () => wakeup.wake())
        await within(TIMEOUT_MS, signal, async () => {
          await Promise.all([reader.connect(), listener.connect()])
          await listener.subscribe(channel)
          // keyspace notifications report more, if the server sends them and this user may subscribe
          await listener.subscribe(`__keyspace@${endpoint.db}__:${key}`).catch(() => undefined)
        })
        while (!signal.aborted) {
          yield await within(TIMEOUT_MS, signal, () => readDocument(reader, key))
          await wakeup.wait(interval, signal)
          // so that a flood of messages does not become a flood of readings
          await pause(20, signal)
          if (failure) throw failure
        }
      } catch (error) {
        // the error that broke the connection is more useful than that of the command after it
        throw failure ?? error
      } finally {
        signal.removeEventListener('abort', close)
        close()
      }
    }
    const write = (text: string, base: SourceDocument, signal: AbortSignal) =>
      writeGuarded(text, { name, secrets }, async () => {
        let failure: Error | undefined
        const writer = await createClient(endpoint, error => {
          failure ??= error
        })
        try {
          return await within(TIMEOUT_MS, signal, async () => {
            await writer.connect()
            await writer.watch(key)
            if ((await readDocument(writer, key)).text !== base.text) throw conflict(name)
            // published in the same transaction, so that a subscriber that reads then finds the new document
            const done = await writer.multi().set(key, text).publish(channel, 'changed').exec()
            if (done === null) throw conflict(name)
            for (const [error] of done) if (error) throw error
            return hashText(text)
          })
        } catch (error) {
          throw failure ?? error
        } finally {
          if (writer.status !== 'end') writer.disconnect()
        }
      })
    return { name, watch: signal => changes(readings, signal, { name, secrets }), write }
  },
})

/** Reads no more of a key than the largest document has. */
async function readDocument(reader: Redis, key: string): Promise<SourceDocument> {
  const text = decodeText(await reader.getrangeBuffer(key, 0, LARGEST_BYTES))
  // a user without permission for EXISTS gets an empty document
  const isMissing = text === '' && (await reader.exists(key).catch(() => 1)) === 0
  return { text, version: hashText(text), ...(isMissing ? { isMissing } : {}) }
}

/** Returns a connection that does not reconnect: the watch starts again. */
async function createClient(endpoint: RedisEndpoint, onFailure: (error: Error) => void): Promise<Redis> {
  const { Redis } = await importIoredis()
  const client = new Redis({
    ...endpoint,
    lazyConnect: true,
    protocol: 2,
    connectTimeout: TIMEOUT_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    autoResubscribe: false,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    connectionName: 'diana-rules',
  })
  client.on('error', onFailure)
  client.on('end', () => onFailure(new Error('closed the connection')))
  return client
}
