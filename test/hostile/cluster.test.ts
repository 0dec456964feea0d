import { randomRuns } from '@test/random-runs'
import { type RedisCluster, startCluster } from '@test/servers/redis-cluster'
import { type Call, createLimiter, type Limiter } from 'diana-limiter'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

// Callers of a Redis Cluster choose the values that they are counted by. Whatever they choose: each value has a limit of its own, no
// value chooses the node of its keys or a key of another rule, and every call is decided by the Cluster.

const limit = 4
const rules = [
  { id: 'rate', by: 'header:x-name', limit: `${limit}/h`, match: { path: '/rate' } },
  {
    id: 'bucket',
    by: ['ip', 'header:x-name'],
    algorithm: 'token-bucket',
    limit: `${limit}/h`,
    match: { path: '/two' },
  },
  { id: 'window', by: 'query:name', algorithm: 'fixed-window', limit: `${limit}/h`, match: { path: '/query' } },
  { id: 'slots', by: 'header:x-name', algorithm: 'concurrency', limit, match: { path: '/slots' } },
] as const
let cluster: RedisCluster
let limiters: readonly Limiter[] = []

beforeAll(async () => {
  cluster = await startCluster()
  const create = () => createLimiter({ rules, store: { redis: cluster.client } })
  limiters = [await create(), await create()]
}, 60_000)
afterAll(async () => {
  for (const limiter of limiters) await limiter.close()
  await cluster.close()
})

/** Texts that mean something in names of keys, in scripts, in patterns and in objects. */
const known = [
  ...['{', '}', '{}', '{a}', '}{', '{{a}}', '{rate:', 'rate}', ':old', '*', '?', '[a-z]', '\\', '"', "'", '%7B', '%00'],
  ...['diana:rate:header{x}', 'diana:era{7}', '__proto__', 'constructor', 'nil', '0', '-1', '1e309', 'NaN'],
  ...[
    '\u0000',
    '\r\n',
    '\t',
    ' ',
    '\u2028',
    '\ud800',
    '\udc00x',
    'é',
    'e\u0301',
    '\ufeff',
    '€'.repeat(700),
    'x'.repeat(6000),
  ],
  ...[
    'redis.call("flushall")',
    'EVAL',
    '*1\r\n$8\r\nFLUSHALL\r\n',
    '\u0001',
    '\u001f',
    '|',
    ',',
    ';',
    '/',
    '..',
    '../x',
  ],
]
const piece = fc.oneof(
  fc.constantFrom(...known),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.string({ unit: fc.constantFrom('{', '}', ':', 'a', '1'), maxLength: 8 }),
)
const value = fc.array(piece, { minLength: 1, maxLength: 3 }).map(pieces => pieces.join(''))
/** A value that differs from another one by little. */
const neighbor = (text: string): fc.Arbitrary<string> =>
  fc.constantFrom(`${text}}`, `{${text}`, `${text}:old`, `${text}\u0000`, `${text}{`, `:${text}`, `x${text}`)

type Kind = 'rate' | 'two' | 'query' | 'slots'
let runs = 0

function callOf(kind: Kind, run: number, text: string): Call {
  const name = `${run} ${text}`
  // a query has no half of a pair of surrogates
  const query = `name=${encodeURIComponent(Buffer.from(name).toString())}`
  return { method: 'GET', path: `/${kind}`, query, ip: '192.0.2.1', headers: { 'x-name': name } }
}

test('every value of a caller has exactly its limit, and takes nothing from a value that is nearly equal', async () => {
  const scene = value.chain(text =>
    fc.tuple(fc.constant(text), neighbor(text), fc.constantFrom<Kind>('rate', 'two', 'query', 'slots')),
  )
  await fc.assert(
    fc.asyncProperty(scene, async ([text, other, kind]) => {
      const run = runs++
      const ask = async (which: string, i: number) => await limiters[i % 2]!.check(callOf(kind, run, which))
      const verdicts = await Promise.all(Array.from({ length: limit + 2 }, (_, i) => ask(text, i)))
      expect(verdicts.filter(({ allowed }) => allowed).length).toBe(limit)
      expect((await limiters[0]!.peek(callOf(kind, run, other))).decisions[0]!.remaining).toBe(limit)
      const others = await Promise.all(Array.from({ length: limit }, (_, i) => ask(other, i)))
      expect(others.every(({ allowed }) => allowed)).toBe(true)
    }),
    { numRuns: randomRuns(400) },
  )
  for (const limiter of limiters) expect(limiter.status().store).toMatchObject({ healthy: true, outages: [] })
})

test('a key belongs to one rule, and the part that chooses its node is the whole value of the caller', async () => {
  const keys = (await Promise.all(cluster.nodes.map(node => node.keys('*')))).flat()
  const ledgers = keys.filter(key => /^diana:(?:bucket|rate|slots|window):/.test(key))
  expect(ledgers.length).toBeGreaterThan(3)
  // no brace of a caller ends the part too early, or begins another one; behind it is the number of a process that holds permits
  const by = {
    bucket: 'ip,header%3Ax-name',
    rate: 'header%3Ax-name',
    slots: 'header%3Ax-name:held',
    window: 'query%3Aname',
  }
  for (const key of ledgers) {
    const rule = key.split(':')[1] as keyof typeof by
    expect(key.startsWith(`diana:${rule}:${by[rule]}{`)).toBe(true)
    expect(key.slice(`diana:${rule}:${by[rule]}`.length)).toMatch(/^\{[^{}]+\}(?::\d+)?$/s)
  }
  const others = keys.filter(key => !ledgers.includes(key)).map(key => key.replaceAll(/\d+/g, 'n'))
  expect([...new Set(others)].filter(key => !/^diana:(?:era\{n\}|dn[:{])/.test(key))).toEqual([])
})

test('a value can be reset, and only that value', async () => {
  await fc.assert(
    fc.asyncProperty(value, async text => {
      const run = runs++
      for (let i = 0; i < limit; i++) await limiters[i % 2]!.check(callOf('rate', run, text))
      const other = `${text}}`
      await limiters[0]!.check(callOf('rate', run, other))
      await limiters[1]!.reset('rate', callOf('rate', run, text))
      const left = async (which: string) =>
        (await limiters[0]!.peek(callOf('rate', run, which))).decisions[0]!.remaining
      expect([await left(text), await left(other)]).toEqual([limit, limit - 1])
    }),
    { numRuns: randomRuns(100) },
  )
})
