import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import schema from '../../../../../docs/diana.schema.json' with { type: 'json' }
import { algorithms } from '../../algorithms/index.ts'
import { createLimiter } from '../../create/create-limiter.ts'
import { dimensions } from '../../dimensions/index.ts'
import { rateLimit as onExpress } from '../express.ts'
import { rateLimit as onFastify } from '../fastify.ts'
import { rateLimit as onFetch } from '../fetch.ts'
import { rateLimit as onHono } from '../hono.ts'
import { rateLimit as onHttp } from '../http.ts'
import { rateLimit as onKoa } from '../koa.ts'
import { DianaModule } from '../nest.ts'
import { dimensionNames } from './check-values.ts'
import { sortOptions } from './options.ts'
import type { OwnLimiter } from './own-limiter.ts'

type Any = (...args: unknown[]) => unknown
type Given = Readonly<Record<string, unknown>>

/** Every way to give the options of one limit. */
const entries: Readonly<Record<string, (options: unknown) => unknown>> = {
  'node:http': options => (onHttp as Any)(options, () => {}),
  'a middleware of Connect': options => (onHttp as Any)(options),
  Express: options => (onExpress as Any)(options),
  Fastify: options => (onFastify as Any)(options),
  Koa: options => (onKoa as Any)(options),
  Hono: options => (onHono as Any)(options),
  fetch: options => (onFetch as Any)(options),
  Nest: options => DianaModule.forRoot(options as never),
}

/** Values of all types; most are wrong for an option. */
const values: Readonly<Record<string, unknown>> = {
  undefined,
  null: null,
  'a number': 7,
  'a negative number': -1,
  'a fraction': 1.5,
  NaN: Number.NaN,
  text: 'nonsense here',
  'empty text': '',
  true: true,
  false: false,
  'an empty list': [],
  'a list of nothing': [null],
  'a list of maps': [{}],
  'an empty map': {},
  'a map': { nonsense: 1 },
  'a function': () => 'x',
  'an async function': async () => 'x',
  'a symbol': Symbol('x'),
  'a bigint': 5n,
  'a date': new Date(0),
}

const filterOptions: Readonly<Record<string, readonly string[]>> = {
  skip: ['a function', 'an async function'],
  attributes: ['a function'],
  onRefused: ['a function', 'an async function'],
  onError: ['a function', 'an async function'],
  resource: [],
  caseSensitive: ['true', 'false'],
}
const documentOptions = ['identify', 'trustProxy', 'forwardedBy', 'ipv6Prefix', 'jwt', 'maxKeys']
const answerOptions: Readonly<Record<string, string>> = { status: 'status', headers: 'headers', message: 'body' }
const ruleOptions = [
  ...'id limit by match algorithm count whenFull queue whenStoreDown lease missing countWhen resetWhen block'.split(
    ' ',
  ),
  ...'credit allow deny answer segments align zone anchor burst start refill delay warmUp coldFactor min'.split(' '),
]
const limit = '5/m'

/** The options as the limiter takes them: the full check, by schemas. */
function forLimiter(given: Given): Given {
  const { store, status, headers, message, ...rest } = given
  const take = (names: readonly string[]) =>
    Object.fromEntries(Object.entries(rest).filter(([name]) => names.includes(name)))
  const answer = { status, headers, body: message, ...(rest.answer as object | undefined) }
  const isOdd =
    'answer' in rest && (typeof rest.answer !== 'object' || rest.answer === null || Array.isArray(rest.answer))
  return {
    ...take(documentOptions),
    ...(store !== undefined && { store }),
    answer: isOdd ? rest.answer : Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== undefined)),
    rules: [
      {
        id: 'rate-limit',
        by: 'ip',
        ...take(ruleOptions.filter(name => name !== 'answer')),
        ...(rest.cost !== undefined && { cost: rest.cost }),
      },
    ],
  }
}

/** What an entry throws before it returns; undefined if it returns. */
function thrownBy(entry: (options: unknown) => unknown, options: unknown): string | undefined {
  try {
    const made = entry(options)
    void (made as Partial<OwnLimiter>).close?.()
    if (made instanceof Promise) void made.then(({ providers }) => providers[0].useValue.close())
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

afterEach(() => {
  vi.restoreAllMocks()
})

/** The types of which some value is right; every other type is wrong. */
const rightTypes: Readonly<Record<string, readonly string[]>> = {
  by: ['an empty list', 'a function', 'an async function'],
  limit: ['a function', 'an async function'],
  match: ['an empty map', 'a date'],
  queue: ['an empty map', 'a date'],
  credit: ['true', 'false'],
  allow: ['an empty map'],
  deny: ['an empty map'],
  answer: ['an empty map', 'a date'],
  segments: ['a number'],
  identify: ['an empty map'],
  trustProxy: ['a number', 'an empty list'],
  maxKeys: ['a number'],
  clock: ['a function'],
  cost: ['a number', 'a function'],
  message: ['text', 'empty text', 'an empty list', 'a list of nothing', 'a list of maps', 'an empty map', 'a map'],
  store: ['a function', 'an async function'],
}

describe.each([...ruleOptions, ...documentOptions, ...Object.keys(answerOptions), 'clock', 'cost', 'store'])(
  'the option %s of one limit',
  name => {
    it(`${name} with a value of a wrong type throws at the call in each framework`, () => {
      for (const [type, value] of Object.entries(values)) {
        // what is left out cannot be wrong, except for the limit and a store whose address is not set
        const isRight =
          value === undefined ? name !== 'limit' && name !== 'store' : rightTypes[name]?.includes(type) === true
        const given = { limit, ...(name === 'queue' && { whenFull: 'wait' }), [name]: value }
        if (isRight) expect(() => sortOptions(given as never, [])).not.toThrow()
        for (const [framework, entry] of isRight ? [] : Object.entries(entries)) {
          const expected = expect.stringMatching(new RegExp(`^rateLimit: .*\\b${name}\\b`))
          expect([framework, type, thrownBy(entry, given)]).toEqual([framework, type, expected])
        }
      }
    })
  },
)

describe.each(Object.entries(filterOptions))('the option %s of a filter', (name, valid) => {
  it(`${name} with a wrong value throws at the call of each framework`, () => {
    for (const [type, value] of Object.entries(values)) {
      for (const [framework, entry] of Object.entries(entries)) {
        if (value === undefined || valid.includes(type)) continue
        const expected = expect.stringMatching(new RegExp(`^rateLimit: ${name} must`))
        expect([framework, type, thrownBy(entry, { limit, [name]: value })]).toEqual([framework, type, expected])
      }
    }
  })
})

/** Options of other limiters, each of which has a remedy. */
const foreign: Readonly<Record<string, readonly string[]>> = {
  'express-rate-limit':
    'windowMs max statusCode handler legacyHeaders standardHeaders identifier passOnStoreError keyGenerator ipv6Subnet requestPropertyName skipSuccessfulRequests skipFailedRequests requestWasSuccessful validate'.split(
      ' ',
    ),
  'rate-limiter-flexible':
    'points duration storeClient storeType keyPrefix blockDuration execEvenly execEvenlyMinDelayMs insuranceLimiter inMemoryBlockOnConsumed inMemoryBlockDuration useRedisPackage rejectIfRedisNotReady tableName dbName'.split(
      ' ',
    ),
  '@nestjs/throttler':
    'ttl throttlers ignoreUserAgents skipIf getTracker generateKey setHeaders errorMessage storage name'.split(' '),
  '@fastify/rate-limit':
    'timeWindow global ban hook cache allowList redis nameSpace continueExceeding skipOnError groupId errorResponseBuilder enableDraftSpec addHeadersOnExceeding addHeaders onExceeded onBanReach exponentialBackoff'.split(
      ' ',
    ),
  'koa-ratelimit': 'driver db disableHeader whitelist blacklist throw'.split(' '),
  bottleneck:
    'maxConcurrent minTime highWater strategy penalty reservoir reservoirRefreshInterval reservoirRefreshAmount reservoirIncreaseInterval reservoirIncreaseAmount trackDoneStatus datastore clearDatastore clientOptions Redis timeout Promise'.split(
      ' ',
    ),
}

it.each(Object.entries(foreign))(
  'each option of %s throws at the call, with what to write instead',
  (_limiter, names) => {
    for (const name of names) {
      for (const entry of Object.values(entries)) {
        const message = thrownBy(entry, { limit, [name]: 5 }) ?? 'nothing'
        expect(message).toMatch(new RegExp(`^rateLimit: unknown option ${name}; (?:write \\w+|it is)`))
      }
    }
  },
)

it('a misspelled name of each option throws at the call, with the right name', () => {
  for (const name of [
    ...ruleOptions,
    ...documentOptions,
    ...Object.keys(answerOptions),
    ...Object.keys(filterOptions),
    'store',
    'clock',
    'cost',
  ]) {
    for (const typed of [`${name}x`, `${name.slice(0, 2)}${name[3] ?? ''}${name[2] ?? ''}${name.slice(4)}`]) {
      if (typed === name || typed.length < 3) continue
      for (const entry of Object.values(entries))
        expect(thrownBy(entry, { limit, [typed]: 1 })).toMatch(/unknown option/)
    }
    if (name.length > 3)
      expect(thrownBy(entries.Express!, { limit, [`${name}x`]: 1 })).toContain(`did you mean ${name}?`)
  }
})

/** Mistakes that only the limiter notices: numbers that an algorithm cannot count. Filters with them refuse every request. */
const noticedLater =
  /warmUp is missing|burst is missing|delay (?:paces|must not)|never refills|has no rate|must not be above|lets too many|keeps every call|is for calendar|calendar period|time zone|anchor|is not for|is for rules|needs a key|says nothing|needs values|needs by|depends on nothing|is only for limits|least above|shorter than|1\.1|above the limit|names \{|must be redis:|1d|unit|weights|reserve|settle|media type|is the type|again, since|too|callers to have|cannot be counted|must name|is not set/

describe('the check at the call and the check of the limiter', () => {
  const rates = [
    '5/m',
    '100/s',
    '1000/day',
    '20/100ms',
    '0/s',
    '5/x',
    '2 per min',
    5,
    '5',
    ['5/s', '100/m'],
    ['5/s', 'x'],
    [],
    null,
  ]
  const option = (name: string, ...some: readonly unknown[]) => fc.tuple(fc.constant(name), fc.constantFrom(...some))
  const one = fc.oneof(
    option(
      'limit',
      ...rates,
      { by: 'account', values: { pro: '9/m' }, default: '5/m' },
      { default: '5/m' },
      { by: 'account', values: { pro: '9' }, default: '5/m' },
    ),
    option('algorithm', ...algorithms.map(({ name }) => name), 'token-buket'),
    option(
      'by',
      'ip',
      [],
      ['ip', 'method'],
      'header:x-key',
      'header',
      'jwt:sub',
      'account',
      ['ip', 'ip'],
      'tenant',
      'cookie:a b',
    ),
    option(
      'match',
      'none',
      {},
      { path: '/a/**' },
      { path: '^/a' },
      { method: 'get' },
      { method: 'FETCH' },
      { host: 'a:80' },
      { paths: '/' },
      { header: { 'x-a': 'b' } },
    ),
    option('count', 'local', 'distributed', 'global'),
    option('whenFull', 'refuse', 'wait', 'shadow', 'queue'),
    option(
      'queue',
      {},
      { size: 5 },
      { size: 0 },
      { timeout: '1s' },
      { timeout: '1 sec' },
      { timeout: 5 },
      { sizes: 5 },
    ),
    option('whenStoreDown', 'share', 'allow'),
    option('missing', 'skip', 'shared', 'address', 'none'),
    option(
      'cost',
      'header:x-cost',
      'x-cost',
      { from: 'header:x-cost' },
      { from: 'header:x-cost', most: 0 },
      {},
      { hold: '10m' },
      { hold: '2d' },
      { froms: 1 },
    ),
    option('countWhen', 'failed', 401, ['4xx', 500], '4xx,5xx', 99, []),
    option('resetWhen', 'success', '2xx', 'ok'),
    option('block', '10m', 'manual', '10 min', { first: '1m' }, { first: '1m', factor: 0 }, { factor: 2 }),
    option('credit', true, 'yes'),
    option(
      'allow',
      '10.0.0.0/8',
      ['10.0.0.1'],
      '10.0.0.0/99',
      { account: ['a', 5] },
      { tenant: 'a' },
      { ip: '10.0.0.1' },
    ),
    option(
      'identify',
      {},
      { account: 'header:x-a' },
      { account: 'x-a' },
      { tenant: ['header:x-t', 'ip'] },
      { header: 'ip' },
    ),
    option('trustProxy', 0, 1, 33, true, '10.0.0.0/8', ['10.0.0.0/8', 'fd00::/8'], 'loopback', []),
    option('forwardedBy', 'forwarded', 'x-real-ip'),
    option('ipv6Prefix', 48, 64, 65, '64'),
    option('jwt', { key: 'env:K' }, { verified: true }, {}, { secret: 'x' }, { key: [] }),
    option(
      'answer',
      {},
      { status: 429 },
      { status: 200 },
      { status: 200, body: 'x' },
      { headers: 'draft-8' },
      { contentType: 'text/html' },
    ),
    option('status', 429, 200, 204, 99, '429'),
    option('message', 'x', {}, [], 5),
    option('headers', 'draft-7', 'legacy', 'draft-8', true),
    option('segments', 10, 1),
    option('burst', 5, 0, 1.5),
    option('delay', 1),
    option('start', 'full', 'half'),
    option('refill', 'interval'),
    option('align', 'clock', 'first-call'),
    option('zone', 'Europe/Berlin', 'Mars', ''),
    option('anchor', 5, 'monday', 'someday'),
    option('warmUp', '10s', '10'),
    option('coldFactor', 3, 1),
    option('min', 2, 0),
    option('maxKeys', 10, 0),
  )
  const options = fc.array(one, { maxLength: 5 }).map(all => ({ limit: '5/m', ...Object.fromEntries(all) }) as Given)

  it('the limiter refuses the options that the call refuses, and accepts the others, except for numbers of algorithms', async () => {
    await fc.assert(
      fc.asyncProperty(options, async given => {
        let refused: string | undefined
        try {
          sortOptions(given as never, [])
        } catch (error) {
          refused = (error as Error).message
        }
        let later: string | undefined
        try {
          await (await createLimiter(forLimiter(given) as never)).close()
        } catch (error) {
          later = (error as Error).message
        }
        if (refused !== undefined) expect([given, refused, later]).toEqual([given, refused, expect.any(String)])
        else if (later !== undefined) expect([given, later]).toEqual([given, expect.stringMatching(noticedLater)])
      }),
      { numRuns: randomRuns(200) },
    )
  })

  it('the check at the call knows every option of a rule, and every option within one, that the schema of the rule file has', () => {
    interface Schema {
      readonly properties?: Readonly<Record<string, Schema>>
      readonly anyOf?: readonly Schema[]
      readonly items?: Schema
    }
    const mapsIn = ({ properties, anyOf = [] }: Schema): Readonly<Record<string, Schema>> =>
      Object.assign({}, properties, ...anyOf.map(mapsIn))
    const { rules, jwt, store, identify, trustProxy } = (schema as unknown as Required<Schema>).properties
    const all: Readonly<Record<string, Schema>> = {
      ...mapsIn(rules!.items!),
      ...{ jwt: jwt!, store: store!, identify: identify!, trustProxy: trustProxy! },
    }
    const messageOf = (given: object): string => thrownBy(one => sortOptions(one as never, []), given) ?? 'nothing'
    const names: string[] = []
    for (const [name, option] of Object.entries(all)) {
      // a rule that is off is left out in code
      if (name !== 'enabled') expect(messageOf({ limit, [name]: Symbol('wrong') })).not.toContain('unknown option')
      for (const inner of Object.keys(mapsIn(option))) {
        names.push(`${name}.${inner}`)
        const store = name === 'store' && inner !== 'redis' ? { redis: 'redis://a' } : {}
        const message = messageOf({ limit, whenFull: 'wait', [name]: { ...store, [inner]: null } })
        expect([name, inner, message]).toEqual([name, inner, expect.not.stringContaining('is not a known option')])
      }
    }
    expect(names).toEqual(
      expect.arrayContaining(['match.path', 'queue.size', 'block.first', 'cost.from', 'jwt.key', 'limit.by']),
    )
  })

  it('both know the same dimensions', () => {
    const named = ({ name, argument, arguments: parts, needs }: (typeof dimensionNames)[number]) => ({
      name,
      argument,
      parts,
      needs,
    })
    expect(dimensionNames.map(named).sort((a, b) => (a.name < b.name ? -1 : 1))).toEqual(
      dimensions.map(named).sort((a, b) => (a.name < b.name ? -1 : 1)),
    )
  })
})
