import { servers } from '@test/filters/servers'
import { describe, test } from 'vitest'
import { filterSuite } from '../testing/filters/suite.ts'

describe.each(Object.entries(servers))('%s', (_name, server) => {
  test.each(filterSuite(server).map(({ name, run }) => [name, run] as const))('%s', (_promise, run) => run())
})
