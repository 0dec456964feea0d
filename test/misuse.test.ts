import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { createGateway } from 'diana-gateway'
import { createLimiter, type Limiter } from 'diana-limiter'
import { RateLimit, rateLimited } from 'diana-limiter/decorators'
import * as express from 'diana-limiter/express'
import * as fastifyFilters from 'diana-limiter/fastify'
import { mergeExtensions } from 'diana-limiter/gateway'
import * as hono from 'diana-limiter/hono'
import * as http from 'diana-limiter/http'
import * as koa from 'diana-limiter/koa'
import * as nest from 'diana-limiter/nest'
import { parseText } from 'diana-limiter/schema'
import expressApp from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { listen } from './helpers/filters/listen.ts'
import { freePort } from './helpers/servers/program.ts'

/** Every likely misuse of the library, and what the user is told: no mistake is silent. */

type Any = (...args: unknown[]) => unknown

let limiter: Limiter

beforeAll(async () => {
  limiter = await createLimiter({ rules: [{ id: 'all', limit: '2/h' }] })
})
afterAll(() => limiter.close())

/** What a call throws or rejects with. */
async function told(call: () => unknown): Promise<string> {
  try {
    await call()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing'
}

const remedy = (caller: string): string => `${caller}(await createLimiter({ rules: [{ id: 'all', limit: '100/m' }] }))`
const listener = (): void => {}
const rule = { rule: { id: 'login', limit: '5/m' } }

const mounts: Readonly<Record<string, { name: string; mount: (limiter: unknown) => unknown }>> = {
  'express diana': { name: 'diana', mount: given => (express.diana as Any)(given) },
  'express rateLimit': { name: 'rateLimit', mount: given => (express.rateLimit as Any)(given, rule) },
  'fastify diana': { name: 'diana', mount: given => (fastifyFilters.diana as Any)(given) },
  'fastify rateLimit': { name: 'rateLimit', mount: given => (fastifyFilters.rateLimit as Any)(given, rule) },
  'koa diana': { name: 'diana', mount: given => (koa.diana as Any)(given) },
  'koa rateLimit': { name: 'rateLimit', mount: given => (koa.rateLimit as Any)(given, rule) },
  'hono diana': { name: 'diana', mount: given => (hono.diana as Any)(given) },
  'hono rateLimit': { name: 'rateLimit', mount: given => (hono.rateLimit as Any)(given, rule) },
  'http diana': { name: 'diana', mount: given => (http.diana as Any)(given, listener) },
  'http rateLimit': { name: 'rateLimit', mount: given => (http.rateLimit as Any)(given, listener, rule) },
  'http guard': { name: 'guard', mount: given => (http.guard as Any)(new EventEmitter(), given) },
  'nest DianaGuard': { name: 'DianaGuard', mount: given => new nest.DianaGuard(given as Limiter) },
}

describe.each(Object.entries(mounts))('%s', (_title, { name, mount }) => {
  test('a filter with an unawaited limiter throws where it is mounted', async () => {
    const promise = createLimiter({ rules: [] })
    expect(await told(() => mount(promise))).toBe(
      `${name} was given a promise of a limiter: await it first, as in ${remedy(name)}`,
    )
    await (await promise).close()
  })

  test.each([undefined, null])('a filter with %s instead of a limiter throws where it is mounted', async given => {
    expect(await told(() => mount(given))).toBe(`${name} was given no limiter: make one, as in ${remedy(name)}`)
  })

  test.each([[{ rules: [] }], [{ config: 'diana.yaml' }], [{ limit: '5/s' }]])(
    'a filter with the options %j instead of a limiter throws where it is mounted',
    async given => {
      const told1 = `${name} was given options instead of a limiter: make one, as in ${remedy(name)}`
      expect(await told(() => mount(given))).toBe(told1)
    },
  )

  test('a filter with createLimiter itself throws where it is mounted', async () => {
    expect(await told(() => mount(createLimiter))).toBe(
      `${name} was given createLimiter itself: call and await it, as in ${remedy(name)}`,
    )
  })
})

describe('a filter that is mounted without being called', () => {
  const message =
    'diana was given something that is not a limiter: write diana(limiter), not diana itself, where it is mounted'

  test('a filter that is mounted without being called stops a Fastify application from starting', async () => {
    const app = fastify()
    expect(await told(() => app.register(fastifyFilters.diana as never).ready())).toBe(message)
  })

  test('a filter that is mounted without being called lets no request pass in Express, Koa and Hono', async () => {
    const errors: string[] = []
    const inExpress = expressApp().use(express.diana as never)
    inExpress.use((_request: unknown, response: { send(text: string): void }) => response.send('served'))
    inExpress.use((error: Error, _request: unknown, response: { sendStatus(status: number): void }, _next: unknown) => {
      errors.push(error.message)
      response.sendStatus(500)
    })
    const inKoa = new Koa().use(koa.diana as never).use(context => {
      context.body = 'served'
    })
    inKoa.on('error', ({ message: text }: Error) => errors.push(text))
    for (const handler of [inExpress, inKoa.callback()]) {
      const { port, close } = await listen(createServer(handler))
      expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(500)
      await close()
    }
    const inHono = new Hono().use(hono.diana as never).get('/', context => context.text('served'))
    inHono.onError((error, context) => {
      errors.push(error.message)
      return context.text('failed', 500)
    })
    expect((await inHono.request('/')).status).toBe(500)
    expect(errors).toEqual([message, message, message])
  })

  test('a filter that is mounted without being called stops a Nest application from starting', async () => {
    expect(await told(() => new nest.DianaModule())).toBe(
      'DianaModule was imported without a limiter: write imports: [DianaModule.forRoot(await createLimiter({ … }))]',
    )
  })
})

test('a promise of a limiter is awaited where that is possible', async () => {
  const promise = createLimiter({ rules: [{ id: 'all', limit: '1/h' }] })
  const gateway = await createGateway({ limiter: promise, upstream: 'http://127.0.0.1:9' })
  await gateway.close()
  expect((await nest.DianaModule.forRoot(promise)).global).toBe(true)
  await (await promise).close()
})

test('a gateway without a limiter throws an error that says so', async () => {
  expect(await told(() => createGateway({ upstream: 'http://127.0.0.1:9' } as never))).toBe(
    'createGateway was given no limiter: pass { limiter: await createLimiter({ … }) }',
  )
})

describe('an option of a filter', () => {
  test.each([
    [{ costs: 1 }, 'diana: unknown option costs; did you mean cost?'],
    [
      { max: 5 },
      "diana: unknown option max; limits are rules of the limiter: createLimiter({ rules: [{ id: 'all', limit: '100/m' }] })",
    ],
    [
      { windowMs: 5 },
      "diana: unknown option windowMs; limits are rules of the limiter: createLimiter({ rules: [{ id: 'all', limit: '100/m' }] })",
    ],
    [
      { handler: listener },
      'diana: unknown option handler; say it in the rules, as in answer: { status: 429, body: … }, or with onRefused',
    ],
    [
      { keyGenerator: listener },
      "diana: unknown option keyGenerator; whom a rule counts is its by, as in by: 'ip'; what your code knows goes into attributes",
    ],
    [
      { zzz: 1 },
      'diana: unknown option zzz; it can be told cost, attributes, skip, resource, caseSensitive, onError, onRefused or forwardErrors',
    ],
    [{ cost: '3' }, 'diana: cost must be a whole number of 0 or more, or a function, not "3"'],
    [{ cost: -1 }, 'diana: cost must be a whole number of 0 or more, or a function, not -1'],
    [{ cost: async () => 1 }, 'diana: cost must not be async: return the value itself'],
    [{ attributes: async () => ({}) }, 'diana: attributes must not be async: return the value itself'],
    [{ attributes: { account: 'a' } }, 'diana: attributes must be a function, not a map'],
    [{ skip: true }, 'diana: skip must be a function, not true'],
    [{ resource: 'routes' }, 'diana: resource must be route or path, not "routes"'],
    [{ caseSensitive: 'yes' }, 'diana: caseSensitive must be true or false, not "yes"'],
    ['strict', 'diana: the options must be an object such as { cost: 2 }, not "strict"'],
    [listener, 'diana: the options must be an object such as { cost: 2 }, not a function'],
  ])('an option of a filter that is wrong throws where it is mounted: %j', async (options, message) => {
    const inHono = message.replace('onRefused or forwardErrors', 'onRefused, forwardErrors or peer')
    expect(await told(() => (hono.diana as Any)(limiter, options))).toBe(inHono)
    for (const { diana } of [express, fastifyFilters, koa]) {
      expect(await told(() => (diana as Any)(limiter, options))).toBe(message)
    }
    expect(await told(() => (http.diana as Any)(limiter, listener, options))).toBe(message)
    expect(await told(() => (http.guard as Any)(new EventEmitter(), limiter, options))).toBe(
      message.replace('diana', 'guard'),
    )
    expect(await told(() => new nest.DianaGuard(limiter, options as never))).toBe(
      message.replace('diana', 'DianaGuard'),
    )
  })

  test('an option of a filter of a route must name a rule', async () => {
    const example = "rateLimit(limiter, { rule: { id: 'login', limit: '5/m' } })"
    expect(await told(() => (express.rateLimit as Any)(limiter))).toBe(`rateLimit was told no rule: write ${example}`)
    for (const [given, shown] of [
      [{}, 'nothing'],
      [{ rule: undefined }, 'nothing'],
      [{ rule: [] }, 'a list'],
      [{ rule: '' }, '""'],
      [{ rule: { limit: '5/m' } }, 'a map'],
    ]) {
      const message = `rateLimit: rule must be the id of a rule, or a rule such as ${example}, not ${shown as string}`
      expect(await told(() => (express.rateLimit as Any)(limiter, given))).toBe(message)
    }
  })
})

describe('arguments in the wrong order', () => {
  test.each([
    [
      'http.diana(listener, limiter)',
      () => (http.diana as Any)(listener, limiter),
      'diana was given no listener: write createServer(diana(limiter, (request, response) => …))',
    ],
    [
      'http.diana(limiter)',
      () => (http.diana as Any)(limiter),
      'diana was given no listener: write createServer(diana(limiter, (request, response) => …))',
    ],
    [
      'http.guard(limiter, server)',
      () => (http.guard as Any)(limiter, new EventEmitter()),
      'guard was given no server: write guard(server, limiter), the server first',
    ],
    [
      'rateLimited(words, work)',
      () => (rateLimited as Any)({ limit: '1/s' }, listener),
      "rateLimited was given no function: write rateLimited(work, { limit: '5/s' })",
    ],
    [
      'rateLimited(work)',
      () => (rateLimited as Any)(listener),
      "a limit on a function needs its words: write @RateLimit({ limit: '5/s' }), or rateLimited(work, { limit: '5/s' })",
    ],
    [
      'rateLimited(work, [])',
      () => (rateLimited as Any)(listener, []),
      'rateLimited was given no limits: give one at least',
    ],
    [
      '@RateLimit',
      () => (RateLimit as Any)(listener, { kind: 'method' }),
      "a limit on a function needs its words: write @RateLimit({ limit: '5/s' }), or rateLimited(work, { limit: '5/s' })",
    ],
    [
      '@RateLimit({})',
      () => (RateLimit as Any)({}),
      "limit is missing: say how many in how long, as in { limit: '5/s' }",
    ],
    [
      '@RateLimit({ key: async … })',
      () => (RateLimit as Any)({ limit: '1/s', key: async () => 'a' }),
      'key must not be async: return the value itself',
    ],
  ])('%s throws', async (_title, call, message) => {
    expect(await told(call)).toBe(message)
  })
})

describe('createLimiter', () => {
  const empty =
    'store.redis is empty, as when an environment variable is not set: give the URL of Redis, or leave store out to count in this process'
  const rules = [{ id: 'all', limit: '1/s' }]
  test.each<[unknown, string]>([
    [
      undefined,
      "createLimiter takes options: write createLimiter({ config: 'diana.yaml' }) or createLimiter({ rules })",
    ],
    ['diana.yaml', 'createLimiter takes options: write createLimiter({ config: "diana.yaml" })'],
    [{ rules, store: { redis: undefined } }, empty],
    [{ rules, store: { redis: null } }, empty],
    [{ rules, store: { redis: '' } }, empty],
    [
      { rules, store: 'redis://127.0.0.1' },
      "store must say where Redis is, as in store: { redis: 'redis://127.0.0.1:6379' }",
    ],
    [{ rules, store: {} }, "store must say where Redis is, as in store: { redis: 'redis://127.0.0.1:6379' }"],
    [
      { rules, store: { redis: 'env:DIANA_TEST_UNSET' } },
      'store.redis is in the environment variable "DIANA_TEST_UNSET", which is not set: set it, or write the value here',
    ],
    [
      { rules: [{ ...rules[0], by: async () => 'a' }] },
      'all.by must not be async: return the value itself, and look it up before',
    ],
    [
      { rules: [{ ...rules[0], cost: async () => 1 }] },
      'all.cost must not be async: return the value itself, and look it up before',
    ],
    [
      { rules: [{ ...rules[0], by: 'ip', limit: { by: () => 'a', values: { a: '1/s' }, default: '1/s' } }] },
      'rule "all": rules[0].limit.by must be text, not a function',
    ],
    [
      { rules, answer: { headers: 'draft-8' } },
      'answer.headers must be draft-11, draft-7, draft-6, legacy or none, not "draft-8"',
    ],
    [
      { rules: [{ id: 'all', limit: '1k/s' }] },
      'rule "all": rules[0].limit "1k/s" is not a limit: did you mean 1000/s?',
    ],
    [{ rules: [{ limit: '1/s' }] }, 'rules[0].id is missing: name the rule, as in id: sms'],
    [
      { rules, identify: { account: async () => 'a' } },
      'identify.account must not be async: return the value itself, and look it up before',
    ],
  ])('createLimiter(%j) throws an error that says what is wrong', async (options, message) => {
    expect(await told(() => createLimiter(options as never))).toBe(message)
  })

  test.each([[new Headers({ 'x-key': 'a' })], [new Map([['x-key', 'a']])], [['x-key', 'a']]])(
    'check with headers that cannot be read by name throws',
    async headers => {
      expect(await told(() => limiter.check({ method: 'GET', path: '/', headers: headers as never }))).toBe(
        'headers must be a plain object of names in lower case, as Node has them: pass Object.fromEntries(request.headers)',
      )
    },
  )
})

describe('a rule file with options of another rate limiter', () => {
  const all = 'rules: [{ id: a, limit: 1/s }]'
  test.each([
    ['rules: [{ id: a, limit: 1/s, match: /x/** }]', 'match must be none, not "/x/**": write match: { path: "/x/**" }'],
    [
      'rules: [{ id: a, limit: 1/s, match: [/x] }]',
      'match must be a map of options, not a list: write match: { path: /orders/** }, or match: none',
    ],
    ['rules: [{ id: a, limit: 1/s, path: /x }]', 'path is not a known option: write match: { path: /orders/** }'],
    [
      'rules: [{ id: a, limit: 3/M }]',
      'limit "3/M" is not a limit: did you mean 3/m, for minutes, or 3/month, for months?',
    ],
    [
      'rules: [{ id: a, limit: 3/2M }]',
      'limit "3/2M" is not a limit: did you mean 3/2m, for minutes, or 3/60d, for months?',
    ],
    ['rules: [{ id: a, limit: 1/s, windowMs: 1000 }]', 'windowMs is not a known option: write limit: 100/m'],
    ['rules: [{ id: a, limit: 1/s, keyGenerator: ip }]', 'keyGenerator is not a known option: write by: ip'],
    [
      'rules: [{ id: a, limit: 1/s, statusCode: 429 }]',
      'statusCode is not a known option: write answer: { status: 429 }',
    ],
    [
      'rules: [{ id: a, limit: 1/s, nodelay: true }]',
      'nodelay is not a known option: write whenFull: refuse, which is the default',
    ],
    [
      'rules: [{ id: a, limit: 1/s, answer: 429 }]',
      'answer must be a map of options, not 429: write answer: { status: 429 }',
    ],
    [
      'rules: [{ id: a, limit: 1/s, queue: 5, whenFull: wait }]',
      'queue must be a map of options, not 5: write queue: { size: 5 }',
    ],
    [
      'rules: [{ id: a, limit: 1/s, match: { path: "^/api/.*$" } }]',
      'match.path "^/api/.*$" is a regular expression, and a path is a pattern: write "/api/**"',
    ],
    [
      'rules: [{ id: a, limit: 1/s, match: { path: /api/.* } }]',
      'match.path "/api/.*" is a regular expression, and a path is a pattern: write "/api/**"',
    ],
    [
      'rules: [{ id: a, limit: 1/s, match: { path: "/users/\\\\d+" } }]',
      'match.path "/users/\\d+" is a regular expression, and a path is a pattern: write "/users/*"',
    ],
    [
      'rules: [{ id: a, limit: 1/s, match: { path: "/(a|b)/x" } }]',
      'match.path "/(a|b)/x" is a regular expression, and a path is a pattern: write "/*/x"',
    ],
    [`${all}\nanswer: 429`, 'answer must be a map of options, not 429: write answer: { status: 429 }'],
    [
      `${all}\nanswer: { status: 200 }`,
      'answer.status must be at least 400, not 200, unless a body says that it is a refusal',
    ],
    [
      `${all}\nstore: redis://127.0.0.1`,
      'store must be a map of options, not "redis://127.0.0.1": write store: { redis: redis://127.0.0.1:6379 }',
    ],
    [`${all}\nredis: redis://127.0.0.1`, 'redis is not a known option: write store: { redis: redis://127.0.0.1:6379 }'],
    [`${all}\njwt: secret`, 'jwt must be a map of options, not "secret": write jwt: { key: env:JWT_KEY }'],
    [
      'rules: { id: a, limit: 1/s }',
      'rules must be a list, not a map: write rules: [{ id: all, limit: 100/m }], or each rule behind a dash',
    ],
  ])('the rule file %s gets the right hint', (text, message) => {
    const { mistakes } = parseText(text, 'diana.yaml', mergeExtensions({}, []))
    expect(mistakes.map(one => one.message)).toContain(message)
  })

  test.each(['/wiki/Foo_(bar)', '/price$', '/files/*.*', '/a.b/*', '/~ann', '/x/.well-known'])(
    'the path %s is reported as an unsupported regular expression',
    path => {
      const text = JSON.stringify({ rules: [{ id: 'a', limit: '1/s', match: { path } }] })
      expect(parseText(text, 'diana.yaml', mergeExtensions({}, [])).mistakes).toEqual([])
    },
  )
})

describe('mistakes that show only at run time cause one warning with a code', () => {
  let warnings: [code: string, message: string][]
  let fresh: typeof import('../packages/limiter/src/index.ts')
  const closing: (() => unknown)[] = []

  beforeEach(async () => {
    warnings = []
    vi.spyOn(process, 'emitWarning').mockImplementation((message, options) => {
      warnings.push([(options as { code: string }).code, String(message)])
    })
    vi.resetModules()
    fresh = await import('../packages/limiter/src/index.ts')
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
    vi.restoreAllMocks()
  })

  const call = { method: 'GET', path: '/' }
  const promising =
    'a function that must return a value returned a promise, which is ignored: return the value itself, and look up what takes time before the filter: '

  test('a Redis that is down at the start causes one warning', async () => {
    const store = { redis: `redis://127.0.0.1:${await freePort()}` }
    const made = await fresh.createLimiter({ store, rules: [{ id: 'all', limit: '1/h' }] })
    closing.push(() => made.close())
    await made.check(call)
    await vi.waitFor(() => expect(warnings.map(([code]) => code)).toEqual(['DIANA_STORE_DOWN']))
    expect(warnings[0]![1]).toMatch(
      /^the store cannot be asked, so each process counts by itself: start Redis or correct store; limiter\.events\.on\("store"\) reports when it is back: /,
    )
  })

  test('a node-redis client that is not connected causes one warning', async () => {
    const client = { isOpen: false, sendCommand: () => Promise.reject(new Error('The client is closed')) }
    const made = await fresh.createLimiter({ store: { redis: client as never }, rules: [{ id: 'all', limit: '1/h' }] })
    closing.push(() => made.close())
    expect(warnings[0]).toEqual([
      'DIANA_STORE_NOT_CONNECTED',
      'the node-redis client in store.redis is not connected, so each process counts by itself: await client.connect() before createLimiter()',
    ])
  })

  test.each([
    ['by', { rules: [{ id: 'each', by: () => Promise.resolve('a'), limit: '9/h' }] }, 'each.by'],
    [
      'identify',
      { identify: { who: () => Promise.resolve('a') }, rules: [{ id: 'each', by: 'who', limit: '9/h' }] },
      'identify.who',
    ],
    ['cost', { rules: [{ id: 'each', cost: () => Promise.resolve(1), limit: '9/h' }] }, 'each.cost'],
  ])('a function for %s that returns a promise causes one warning', async (_word, options, name) => {
    const made = await fresh.createLimiter(options as never)
    closing.push(() => made.close())
    await made.check(call)
    await made.check(call)
    expect(warnings).toEqual([['DIANA_ASYNC_FUNCTION', promising + name]])
  })

  test('functions of a filter that return a promise cause one warning', async () => {
    const filters = await import('../packages/limiter/src/filters/hono.ts')
    const made = await fresh.createLimiter({ rules: [{ id: 'all', limit: '1/h' }] })
    closing.push(() => made.close())
    const promise = (): never => Promise.resolve(true) as never
    const app = new Hono()
    app.use(filters.diana(made, { attributes: promise, cost: promise }))
    app.get('/', context => context.text('served'))
    expect([(await app.request('/')).status, (await app.request('/')).status]).toEqual([200, 503])
    expect(warnings).toEqual(['attributes', 'cost'].map(name => ['DIANA_ASYNC_FUNCTION', promising + name]))
  })

  test('a function that returns an object instead of a name causes one warning', async () => {
    const made = await fresh.createLimiter({ rules: [{ id: 'each', by: (() => ({ id: 1 })) as never, limit: '9/h' }] })
    closing.push(() => made.close())
    await made.check(call)
    expect(warnings).toEqual([
      [
        'DIANA_BAD_VALUE',
        'a function returned a value that cannot identify a caller, which is ignored: return text, a number or undefined: each.by',
      ],
    ])
  })

  test('headers with capital letters cause one warning', async () => {
    const made = await fresh.createLimiter({ rules: [{ id: 'each', by: 'header:x-key', limit: '9/h' }] })
    closing.push(() => made.close())
    for (let time = 0; time < 2; time++) await made.check({ ...call, headers: { 'X-Key': 'a' } })
    expect(warnings).toEqual([
      [
        'DIANA_HEADER_CASE',
        'a call has headers with capital letters in their names, which no rule reads: pass the names in lower case: X-Key',
      ],
    ])
  })

  test('invalid rules of a source cause one warning, unless the application listens', async () => {
    const served = createServer((_request, response) => response.end('rules: [{ id: a, limit: many }]'))
    const { port, close } = await listen(served)
    closing.push(close)
    const remote = { http: `http://127.0.0.1:${port}/rules` }
    const silent = await fresh.createLimiter({ remote, rules: [{ id: 'all', limit: '1/h' }] })
    closing.push(() => silent.close())
    await vi.waitFor(() => expect(warnings.map(([code]) => code)).toEqual(['DIANA_RULES_REJECTED']))
    expect(warnings[0]![1]).toContain(
      'new rules are invalid, so the last valid ones stay in force: correct the document: ',
    )
    expect(warnings[0]![1]).toContain('rule "a": limit must be <count>/<period>')
  })
})
