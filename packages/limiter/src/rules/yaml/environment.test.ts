import { expect, test } from 'vitest'
import { algorithms } from '../../algorithms/index.ts'
import { dimensions } from '../../dimensions/index.ts'
import { sources } from '../../sources/index.ts'
import { parseText } from '../parse-text.ts'
import { readEnvironment } from './environment.ts'

test('values under store and remote are read from the environment, and nothing else is', () => {
  const environment = { REDIS_URL: 'redis://user:secret@host', TOKEN: 't' }
  const document = {
    store: { redis: ['env:REDIS_URL', 'redis://other'] },
    remote: { etcd: 'http://host', password: 'env:TOKEN' },
    rules: [{ id: 'env:TOKEN' }],
  }
  expect(readEnvironment(document, environment)).toEqual({
    document: {
      store: { redis: ['redis://user:secret@host', 'redis://other'] },
      remote: { etcd: 'http://host', password: 't' },
      rules: [{ id: 'env:TOKEN' }],
    },
    problems: [],
  })
})

test('a variable that is not set, or empty, is one mistake with its line', () => {
  const text = 'rules: [{ id: a, limit: 1/s }]\nstore:\n  redis: env:DIANA_TEST_UNSET\n'
  const { mistakes } = parseText(text, 'diana.yaml', { algorithms, dimensions, sources })
  expect(mistakes).toEqual([
    {
      file: 'diana.yaml',
      line: 3,
      column: 10,
      message:
        'store.redis is in the environment variable "DIANA_TEST_UNSET", which is not set: set it, or write the value here',
    },
  ])
  expect(readEnvironment({ store: { redis: 'env:EMPTY' } }, { EMPTY: '' }).problems).toHaveLength(1)
})
