import { oneLimitServers } from '@test/filters/one-limit-servers'
import { servers } from '@test/filters/servers'
import { describe, test } from 'vitest'
import { oneLimitTests } from '../testing/filters/one-limit.ts'
import { filterSuite } from '../testing/filters/suite.ts'

const connect = { start: () => Promise.reject(new Error('has no limiter')), startOne: oneLimitServers.Connect! }

test.each(oneLimitTests(connect).map(({ name, run }) => [name, run] as const))('Connect: %s', (_promise, run) => run())

describe.each(Object.entries(servers))('%s', (_name, server) => {
  test.each(filterSuite(server).map(({ name, run }) => [name, run] as const))('%s', (_promise, run) => run())
})
