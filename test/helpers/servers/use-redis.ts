import { afterAll, afterEach, beforeAll } from 'vitest'
import { type RedisServer, startRedis } from './redis-server.ts'

/** A Redis for all tests of a file. */
export interface RedisOfTests {
  readonly server: RedisServer
  readonly url: string
  /** Closes something when the test has ended. */
  closeLater<T extends { close(): unknown }>(one: T): T
}

/** Starts a Redis before the tests of a file and ends it after them; it writes nothing to disk. */
export function useRedis(): RedisOfTests {
  let server: RedisServer | undefined
  const opened: { close(): unknown }[] = []
  beforeAll(async () => {
    server = await startRedis()
    await server.client.config('SET', 'appendonly', 'no')
  })
  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close()
  })
  afterAll(() => server?.close())
  return {
    get server() {
      return server!
    },
    get url() {
      return `redis://${server!.authority}`
    },
    closeLater(one) {
      opened.push(one)
      return one
    },
  }
}
