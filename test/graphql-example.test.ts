import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
// @ts-expect-error: an example in JavaScript
import { costOfQuery } from '../examples/graphql/cost.mjs'

beforeEach(() => void vi.stubEnv('PORT', '0'))
afterEach(() => void vi.unstubAllEnvs())

const bomb = `{ ...f0 } ${Array.from({ length: 60 }, (_, at) => `fragment f${at} on T { ${at < 59 ? `...f${at + 1} ...f${at + 1}` : 'x'} }`).join(' ')}`

describe('the cost of a GraphQL query', () => {
  it.each<[string, unknown, number]>([
    ['one field', { query: '{ a }' }, 1],
    ['fields inside', { query: '{ a { b c { d } } }' }, 4],
    ['a list', { query: '{ books(first: 10) { title } }' }, 11],
    ['lists inside lists', { query: '{ books(first: 10) { authors(first: 5) { name } } }' }, 61],
    ['a size in a variable', { query: 'query($n: Int) { books(first: $n) { title } }', variables: { n: 50 } }, 51],
    ['a size that is no number', { query: 'query($n: Int) { books(first: $n) { title } }', variables: { n: 'x' } }, 21],
    ['a size that is not given', { query: 'query($n: Int) { books(first: $n) { title } }' }, 21],
    ['a negative size', { query: '{ books(first: -5) { title } }' }, 21],
    ['a size beyond all bounds', { query: '{ books(first: 99999999) { title } }' }, 1001],
    [
      'the same field by three aliases',
      { query: '{ a: books(first: 10) { t } b: books(first: 10) { t } c: books(first: 10) { t } }' },
      33,
    ],
    ['a fragment', { query: '{ books(first: 2) { ...f } } fragment f on Book { a b }' }, 5],
    ['an inline fragment', { query: '{ a { ... on B { c d } } }' }, 3],
    ['a fragment that contains itself', { query: '{ ...f } fragment f on Q { a ...f }' }, 10_000],
    [
      'fragments that contain each other',
      { query: '{ ...f } fragment f on Q { ...g } fragment g on Q { ...f }' },
      10_000,
    ],
    ['fragments that double each time', { query: bomb }, 10_000],
    ['a deep query', { query: '{a'.repeat(50) + '}'.repeat(50) }, 10_000],
    ['a broad query', { query: `{ ${'a '.repeat(5000)} }` }, 10_000],
    ['the named operation', { query: 'query A { a } query B { b c }', operationName: 'B' }, 2],
    ['an operation that is not there', { query: 'query A { a }', operationName: 'B' }, 10_000],
    ['no GraphQL', { query: '{ a' }, 10_000],
    ['no query', {}, 10_000],
    ['a list of queries', [{ query: '{ a }' }], 10_000],
    ['no body', undefined, 10_000],
  ])('a GraphQL query has a cost: %s', (_title, body, cost) => {
    expect(costOfQuery(body)).toBe(cost)
  })
})

describe('the GraphQL examples', () => {
  it.each(['yogaOnExpress', 'apolloOnExpress', 'yogaOnFetch'])('%s: a caller has a budget of fields', async name => {
    const servers = (await import('../examples/graphql/servers.mjs' as string)) as Record<
      string,
      () => Promise<Serving>
    >
    const { fetch: send, url = 'http://127.0.0.1/graphql', close } = await servers[name]!()
    const ask = (query: string) =>
      send(
        new Request(url, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ query }),
        }),
      )
    try {
      const answer = await ask('{ books(first: 30) { title authors(first: 10) { name } } }')
      expect([answer.status, ((await answer.json()) as { data: { books: unknown[] } }).data.books.length]).toEqual([
        200, 30,
      ])
      expect(answer.headers.get('ratelimit')).toMatch(/^"fields";r=639;/)
      const large = await ask('{ books(first: 100) { title authors(first: 50) { name } } }')
      expect([large.status, large.headers.get('retry-after') !== null]).toEqual([429, true])
      expect((await ask('{ books(first: 3) { title } }')).status).toBe(200)
    } finally {
      await close()
    }
  })
})

interface Serving {
  readonly url?: string
  fetch(request: Request): Promise<Response>
  close(): Promise<unknown>
}
