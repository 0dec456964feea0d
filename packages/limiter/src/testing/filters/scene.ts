import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, type LimiterOptions } from '../../create/create-limiter.ts'
import type { RateLimitOptions } from '../../filters/one-line/options.ts'
import type { Limiter } from '../../limiter.ts'
import type { CommonRuleOptions } from '../../rules/schema/options.ts'
import { soon } from '../sources/watch.ts'
import { ask, type FilterClient, http2Client, httpClient, type Reply } from './client.ts'
import { FilterService } from './service.ts'

/** The options of a filter of one limit, for requests of any framework. */
export type AnyRateLimitOptions = RateLimitOptions<never, never, never>

/** A server that runs on this machine. */
export interface ServerUnderTest {
  readonly port: number
  close(): Promise<unknown>
}

export interface FilterSuiteOptions {
  /** Serves `service` behind the filter under test. */
  start(limiter: Limiter, service: FilterService): Promise<ServerUnderTest>
  /** The server's protocol; default HTTP/1.1. */
  readonly speaks?: 'http/1.1' | 'h2' | undefined
  /** True if the filter sees calls to unknown paths; default true. */
  readonly seesUnknownPaths?: boolean | undefined
  /**
   * True if /login is served behind the filter of a route besides that of the application: `rateLimit(limiter, { rule: login })`
   * with a rule of the id `login`, which the rules of a test replace. Default false.
   */
  readonly limitsRoutes?: boolean | undefined
  /**
   * Serves `/hello` of `service` behind `rateLimit(options)`, a filter of one limit, and a middleware before it that sets
   * `Access-Control-Allow-Origin: https://a.example` and `Vary: Origin`. The handler of errors answers an error with its `statusCode`
   * and the text `handled ` and its `code`. Left out, the filter has no such form.
   */
  startOne?(options: AnyRateLimitOptions, service: FilterService): Promise<ServerUnderTest>
  /** True if a middleware can set headers before the filter of one limit; default true. */
  readonly setsHeadersBefore?: boolean | undefined
  /** True if the framework has a handler of errors; default true. */
  readonly forwardsErrors?: boolean | undefined
}

/** All that a test has at hand. */
export interface Scene {
  readonly limiter: Limiter
  readonly service: FilterService
  readonly port: number
  readonly client: FilterClient
  get(path: string): Promise<Reply>
  /** Returns the number of free concurrency slots of the first rule. */
  free(): Promise<number>
}

/** The rule of /login if the rules of a test have none with this id. */
export const login: { readonly id: string; readonly limit: string } = { id: 'login', limit: '1000/h' }

/** Calls that hold a concurrency slot while they run. */
export const places: Pick<CommonRuleOptions, 'id' | 'match'> & { readonly algorithm: 'concurrency' } = {
  id: 'places',
  match: { path: ['/slow', '/stream', '/broken'] },
  algorithm: 'concurrency',
}

/** Plays one test on a server of its own, and ends that. */
export async function play(
  { start, speaks }: FilterSuiteOptions,
  options: LimiterOptions,
  test: (scene: Scene) => Promise<void>,
): Promise<void> {
  const limiter = await createLimiter(options)
  const service = new FilterService()
  const server = await start(limiter, service)
  const client = speaks === 'h2' ? http2Client(server.port) : httpClient(server.port, false)
  const get = (path: string): Promise<Reply> => ask(client, { path })
  const free = async (): Promise<number> => {
    return (await limiter.peek({ method: 'GET', path: '/slow' })).decisions[0]!.remaining
  }
  try {
    await test({ limiter, service, port: server.port, client, get, free })
  } finally {
    service.letGo()
    for (const release of service.slowly) release()
    client.close()
    await soon(server.close(), 'the end of the server')
    await limiter.close()
  }
}

/** Waits until a condition is true, up to a timeout. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 15_000
  while (!(await holds())) {
    assert.ok(performance.now() < giveUpAt, `never came true: ${holds.toString()}`)
    await sleep(5)
  }
}
