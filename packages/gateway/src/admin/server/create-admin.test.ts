import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomRuns } from '@test/random-runs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { createLimiter, type Limiter } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import fc from 'fast-check'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Processes, watchLimiter } from '../processes.ts'
import { type AdminOptions, createAdmin } from './create-admin.ts'

const token = 'correct-horse-battery-staple'
const rules = `# my rules
rules:
  # everybody
  - id: all
    limit: 100/m
  - id: each
    by: account
    limit: 2/m   # few
identify: { account: [header:x-account] }
`

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-admin-'))
})
afterAll(() => rm(folder, { recursive: true }))

let config: string
let limiter: Limiter
let app: FastifyInstance
let files = 0
beforeEach(async () => {
  config = join(folder, `${++files}.yaml`)
  await writeFile(config, rules)
  limiter = await createLimiter({ config })
  app = await create()
})
afterEach(async () => {
  await app.close()
  await limiter.close()
})

function create(options: Partial<AdminOptions> = {}): Promise<FastifyInstance> {
  return createAdmin({ limiter, host: '127.0.0.1', page: join(folder, 'no-page'), ...options })
}

async function ask(options: InjectOptions) {
  const reply = await app.inject({ ...options, headers: { host: '127.0.0.1:8081', ...options.headers } })
  return { status: reply.statusCode, body: reply.body === '' ? undefined : reply.json(), headers: reply.headers }
}

const get = (path: string) => ask({ url: `/api/v1${path}` })
const send = (method: 'POST' | 'PUT' | 'DELETE', path: string, payload?: object) =>
  ask({ method, url: `/api/v1${path}`, ...(payload ? { payload } : {}) })
const call = (account: string) => ({ method: 'GET', path: '/', ip: '203.0.113.9', headers: { 'x-account': account } })

describe('access to the admin API', () => {
  const asked = (headers: Record<string, string>, url = '/api/v1/status') =>
    app.inject({ url, headers: { host: '127.0.0.1:8081', ...headers } }).then(({ statusCode }) => statusCode)

  it('without a token, the admin API answers requests from this machine', async () => {
    expect(await asked({})).toBe(200)
    expect(await asked({ host: 'localhost:8081' })).toBe(200)
    expect(await asked({ host: '[::1]:8081' })).toBe(200)
  })

  it('with a token, the admin API answers only requests that have it', async () => {
    await app.close()
    app = await create({ token })
    expect(await asked({})).toBe(401)
    expect(await asked({ authorization: 'Bearer wrong' })).toBe(401)
    expect(await asked({ authorization: `Bearer ${token}x` })).toBe(401)
    expect(await asked({ authorization: `Basic ${token}` })).toBe(401)
    expect(await asked({ cookie: `token=${token}` })).toBe(401)
    expect(await asked({ authorization: `Bearer ${token}` })).toBe(200)
    for (const path of ['/api', '/api/', '/api/v1/live', '/api/v1/openapi.json', '/api/none', '/api?x']) {
      expect(await asked({}, path), path).toBe(401)
    }
    for (const path of ['/', '/healthz', '/readyz', '/metrics']) expect(await asked({}, path), path).toBe(200)
  })

  it.each(['http://evil.example', 'null', 'http://127.0.0.1:8080', 'https://127.0.0.1', 'http://localhost:8081'])(
    'the admin API refuses requests of a page of %s',
    async origin => {
      expect(await asked({ origin })).toBe(403)
      expect(await asked({ origin }, '/metrics')).toBe(403)
    },
  )

  it('the admin API answers requests of its own page', async () => {
    expect(await asked({ origin: 'http://127.0.0.1:8081', 'sec-fetch-site': 'same-origin' })).toBe(200)
    expect(await asked({ 'sec-fetch-site': 'cross-site' })).toBe(403)
    expect(await asked({ 'sec-fetch-site': 'same-site' })).toBe(403)
    expect(await asked({ 'sec-fetch-site': 'cross-site' }, '/')).toBe(200)
  })

  it.each([
    'evil.example',
    'evil.example:8081',
    'localhost.evil.example',
    '127.0.0.1.evil.example:8081',
    ':8081',
    '[::1].evil',
  ])('the admin API refuses requests under the host name %j, which an attacker could point here', async host => {
    expect(await asked({ host })).toBe(403)
  })

  it('the admin API answers requests under a listed host name', async () => {
    await app.close()
    app = await create({ hosts: ['Gateway.example'] })
    expect(await asked({ host: 'gateway.example:8081' })).toBe(200)
  })

  it('the admin API listens beyond this machine only with a token of sufficient length', async () => {
    await expect(create({ host: '0.0.0.0' })).rejects.toThrow('token')
    await expect(create({ host: '192.0.2.1', token: 'short' })).rejects.toThrow('too short')
    await (await create({ host: '0.0.0.0', token })).close()
  })

  it('answers of the admin API forbid caching and framing', async () => {
    const { headers } = await get('/status')
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
    })
    expect(headers['content-security-policy']).toContain("default-src 'none'")
    expect(headers['set-cookie']).toBeUndefined()
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })
})

describe('health', () => {
  it('the health endpoint answers 200, and readiness answers 503 once the gateway drains', async () => {
    let ready = true
    await app.close()
    app = await create({ isReady: () => ready })
    expect((await ask({ url: '/readyz' })).status).toBe(200)
    ready = false
    expect((await ask({ url: '/readyz' })).status).toBe(503)
    expect((await ask({ url: '/healthz' })).status).toBe(200)
  })

  it('the health endpoint says why Redis cannot be used, and still answers 200', async () => {
    await app.close()
    const limiter = await createLimiter({
      store: { redis: 'redis://127.0.0.1:1' },
      rules: [{ id: 'all', limit: '5/s' }],
    })
    limiter.events.on('store', () => {})
    app = await create({ limiter })
    const { status, body } = await ask({ url: '/readyz' })
    expect(status).toBe(200)
    expect(body).toEqual({ status: 'ready', store: 'STORE_REFUSES_CONNECTIONS' })
    const metrics = await app.inject({ url: '/metrics', headers: { host: '127.0.0.1:8081' } })
    expect(metrics.body).toMatch(/diana_store_trouble\{.*code="STORE_REFUSES_CONNECTIONS".*\} 1/)
    await limiter.close()
  })
})

describe('the metrics of the admin API', () => {
  const scrape = async () => (await app.inject({ url: '/metrics', headers: { host: '127.0.0.1:8081' } })).body

  it('the metrics of a process with workers have the keys and the overflow that its workers report', async () => {
    await app.close()
    const state = { keys: 7, maxKeys: 10, overflowing: ['each'] }
    app = await create({ processes: { ...watchLimiter(limiter), states: () => [state, state] } })
    const text = await scrape()
    expect(text).toContain('diana_local_keys 14\n')
    expect(text).toContain('diana_local_keys_limit 20\n')
    expect(text).toContain('diana_overflowing_rules 1\n')
  })

  it('the metrics count wrong tokens, each once however often they are scraped', async () => {
    await app.close()
    app = await create({ token })
    for (let i = 0; i < 12; i++) await ask({ url: '/api/v1/rules', headers: { authorization: 'Bearer guess' } })
    await scrape()
    const text = await scrape()
    expect(text).toContain('diana_admin_wrong_tokens_total{result="compared"} 10\n')
    expect(text).toContain('diana_admin_wrong_tokens_total{result="delayed"} 2\n')
  })
})

describe('what the admin API reports', () => {
  it('the admin API masks callers by default, and returns hostile names as text', async () => {
    const names = ['ann', '<script>alert(1)</script>', 'x'.repeat(10_000), '\u001b[2J\u0007']
    for (const name of names) for (let i = 0; i < 4; i++) await limiter.check(call(name))
    const masked = await get('/callers')
    expect(masked.body.callers).toHaveLength(4)
    for (const caller of masked.body.callers)
      expect(caller).toMatchObject({ rule: 'each', masked: true, refused: 2, error: 0 })
    expect(JSON.stringify(masked.body)).not.toMatch(/account=ann"|script/)
    const open = await get('/callers?unmask=true&rule=each&top=1000')
    const keys = open.body.callers.map(({ key }: { key: string }) => key)
    expect(keys).toContain('account=ann')
    expect(keys).toContain('account=<script>alert(1)</script>')
    expect(Math.max(...keys.map((key: string) => key.length))).toBeLessThan(200)
    expect((await get('/callers?rule=all')).body).toEqual({ callers: [] })
  })

  it('the admin API returns rules with their origin, state and text', async () => {
    const { body } = await get('/rules')
    expect(body.rules).toMatchObject([
      {
        id: 'all',
        where: 'local',
        origin: config,
        state: 'on',
        text: 'id: all\nlimit: 100/m',
        limits: [{ count: 100, periodMs: 60_000 }],
      },
      { id: 'each', by: ['account'], text: 'id: each\nby: account\nlimit: 2/m   # few' },
    ])
  })

  it('the admin API explains a pasted call without counting it', async () => {
    for (let i = 0; i < 3; i++) await limiter.check(call('ann'))
    const before = adminOf(limiter).stats().total
    const { body } = await send('POST', '/explain', {
      request: `curl -H 'X-Account: ann' http://any/`,
      ip: '203.0.113.9',
    })
    expect(body).toMatchObject({ allowed: false, refusedBy: 'each', answer: { status: 503 } })
    expect(body.rules[1].key).toEqual({ account: { countedBy: 'value', value: 'ann' } })
    const other = await send('POST', '/explain', {
      method: 'get',
      path: '/x?a=1',
      headers: { 'X-Account': 'bob' },
      ip: '203.0.113.9',
    })
    expect(other.body).toMatchObject({ allowed: true, call: { method: 'GET', path: '/x', query: 'a=1' } })
    expect(adminOf(limiter).stats().total).toEqual(before)
  })

  it('the admin API previews what a change of rules would have done', async () => {
    for (let i = 0; i < 6; i++) await limiter.check(call(i % 2 ? 'ann' : 'bob'))
    const { body } = await send('POST', '/preview', { where: 'local', text: rules.replace('2/m', '1/m') })
    expect(body).toMatchObject({
      calls: 6,
      sampled: false,
      total: { before: { allowed: 4, refused: 2 }, after: { allowed: 2, refused: 4 } },
    })
    expect((await send('POST', '/preview', { text: 'rules: 5' })).status).toBe(422)
  })
})

describe('writes of the admin API', () => {
  it('the admin API writes one rule into the file, leaves the rest unchanged, and applies it at once', async () => {
    const { body } = await get('/document?where=local')
    expect(body).toMatchObject({ text: rules, writable: true })
    const written = await send('PUT', '/rules/each', {
      where: 'local',
      text: 'id: each\nby: account\nlimit: 1/m',
      version: body.version,
    })
    expect(written.status).toBe(200)
    expect(await readFile(config, 'utf8')).toBe(rules.replace('limit: 2/m   # few', 'limit: 1/m'))
    await limiter.check(call('ann'))
    expect((await limiter.check(call('ann'))).allowed).toBe(false)
    const gone = await send('DELETE', `/rules/each?where=local&version=${written.body.version}`)
    expect(gone.status).toBe(200)
    expect((await limiter.check(call('ann'))).allowed).toBe(true)
    expect((await get('/rules')).body.rules.map(({ id }: { id: string }) => id)).toEqual(['all'])
  })

  it('the admin API refuses a write after another change, and returns the current document', async () => {
    const { body } = await get('/document')
    const theirs = rules.replace('100/m', '200/m')
    expect((await send('PUT', '/document', { text: theirs, version: body.version })).status).toBe(200)
    const mine = await send('PUT', '/document', { text: rules.replace('100/m', '300/m'), version: body.version })
    expect(mine.status).toBe(409)
    expect(mine.body.current.text).toBe(theirs)
    const again = await send('PUT', '/document', { text: rules, version: mine.body.current.version })
    expect(again.status).toBe(200)
  })

  it('the admin API refuses an invalid document with the line of the mistake', async () => {
    const { body } = await get('/document')
    const bad = await send('PUT', '/document', { text: rules.replace('2/m', 'few'), version: body.version })
    expect([bad.status, bad.body.mistakes[0]]).toMatchObject([422, { line: 8, rule: 'each' }])
    const rule = await send('PUT', '/rules/each', { text: 'id: each\nby: account\nlimit: few', version: body.version })
    expect([rule.status, rule.body.mistakes[0]]).toMatchObject([422, { line: 3, rule: 'each' }])
    const other = await send('PUT', '/rules/each', { text: 'id: other\nlimit: 1/s', version: body.version })
    expect(other.status).toBe(422)
    expect((await send('DELETE', `/rules/none?version=${body.version}`)).status).toBe(422)
    expect((await send('POST', '/check', { where: 'local', text: rules })).body).toEqual({ mistakes: [] })
    expect(await readFile(config, 'utf8')).toBe(rules)
  })

  it('the admin API refuses a write to a config center if none is configured, with the reason', async () => {
    const reply = await send('PUT', '/document', { where: 'remote', text: rules, version: '' })
    expect([reply.status, reply.body.detail]).toMatchObject([403, expect.stringContaining('remote:')])
  })

  it('the admin API starts and ends a trial', async () => {
    const started = await send('POST', '/trials', { rule: 'each', text: 'id: each\nby: account\nlimit: 1/m' })
    expect(started.body).toMatchObject({ id: 'each~trial', rule: 'each' })
    await limiter.check(call('ann'))
    expect((await limiter.check(call('ann'))).allowed).toBe(true)
    expect(
      adminOf(limiter)
        .stats()
        .rules.find(({ id }) => id === 'each~trial'),
    ).toMatchObject({ shadowRefused: 1 })
    expect((await get('/trials')).body.trials).toHaveLength(1)
    expect((await send('DELETE', '/trials/each~trial')).status).toBe(200)
    expect((await send('DELETE', '/trials/each~trial')).status).toBe(404)
    expect((await send('POST', '/trials', { rule: 'each', text: 'limit: x' })).status).toBe(422)
  })
})

describe('blocked callers', () => {
  beforeEach(async () => {
    await writeFile(config, rules.replace('limit: 2/m   # few', 'limit: 2/m\n    block: manual'))
    await expect.poll(() => limiter.rules[1]?.block).toBe('manual')
  })

  it('a caller that was blocked by its masked row is refused until it is unblocked', async () => {
    for (let i = 0; i < 3; i++) await limiter.check(call('ann'))
    const [{ id: caller }] = (await get('/callers')).body.callers
    await send('POST', '/reset', { caller })
    expect((await limiter.check(call('ann'))).allowed).toBe(true)
    const blocked = await send('POST', '/blocks', { caller, for: '10m' })
    expect(blocked.body).toMatchObject({ rule: 'each', key: expect.stringMatching(/^account=a… #/) })
    expect(await limiter.check(call('ann'))).toMatchObject({ allowed: false, reason: 'blocked' })
    expect((await get('/callers')).body.callers[0].blockedUntil).toBe(blocked.body.until)
    expect((await limiter.check(call('bob'))).allowed).toBe(true)
    const { blocks } = (await get('/blocks')).body
    expect(blocks).toHaveLength(1)
    expect((await send('DELETE', `/blocks/${blocks[0].id}`)).status).toBe(200)
    expect((await limiter.check(call('ann'))).allowed).toBe(true)
    expect((await get('/blocks')).body.blocks).toEqual([])
    expect((await send('DELETE', `/blocks/${blocks[0].id}`)).status).toBe(404)
  })

  it('a caller can be blocked by key or by a call', async () => {
    expect((await send('POST', '/blocks', { rule: 'each', key: 'ann', for: '1m' })).status).toBe(200)
    expect((await limiter.check(call('ann'))).allowed).toBe(false)
    const bob = { method: 'GET', path: '/', headers: { 'X-Account': 'bob' } }
    expect((await send('POST', '/blocks', { rule: 'each', call: bob, for: '1m' })).status).toBe(200)
    expect((await limiter.check(call('bob'))).allowed).toBe(false)
    for (let i = 0; i < 3; i++) await limiter.check(call('cid'))
    expect((await send('POST', '/reset', { rule: 'each', key: 'cid' })).status).toBe(200)
    expect((await limiter.check(call('cid'))).allowed).toBe(true)
  })

  it.each([
    [{ rule: 'each', key: 'ann' }, 400],
    [{ rule: 'each', key: 'ann', for: 'long' }, 400],
    [{ rule: 'each', for: '1m' }, 400],
    [{ key: 'ann', for: '1m' }, 400],
    [{ rule: 'none', key: 'ann', for: '1m' }, 404],
    [{ caller: 'nobody', for: '1m' }, 404],
    [{ rule: 'all', key: 'ann', for: '1m' }, 400],
  ])('the block request %j is answered with %i', async (asked, status) => {
    expect((await send('POST', '/blocks', asked)).status).toBe(status)
  })
})

describe('the OpenAPI document', () => {
  it('the OpenAPI document matches the real answers', async () => {
    for (let i = 0; i < 4; i++) await limiter.check(call('ann'))
    const { body: api } = await get('/openapi.json')
    expect(api.openapi).toBe('3.1.0')
    const ajv = new Ajv2020({ strict: false })
    const { version } = (await get('/document')).body
    const asked: [method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, template?: string, payload?: object][] = [
      ['GET', '/status'],
      ['GET', '/rules'],
      ['GET', '/figures?seconds=5', '/figures'],
      ['GET', '/callers'],
      ['GET', '/session'],
      ['GET', '/audit'],
      ['GET', '/history?seconds=60', '/history'],
      ['GET', '/refusals'],
      ['GET', '/overrides'],
      ['GET', '/names'],
      ['GET', '/trials'],
      ['GET', '/upstreams'],
      ['GET', '/processes'],
      ['GET', '/blocks'],
      ['POST', '/reset', '/reset', { rule: 'each', key: 'ann' }],
      ['POST', '/blocks', '/blocks', { rule: 'each', key: 'ann', for: '1m' }],
      ['GET', '/schema'],
      ['GET', '/document?where=remote', '/document'],
      ['POST', '/explain', '/explain', { request: 'GET /' }],
      ['POST', '/check', '/check', { text: 'rules: [' }],
      ['POST', '/preview', '/preview', { text: rules }],
      ['POST', '/draft', '/draft', { id: 'each', set: [{ path: ['limit'], value: '3/m' }] }],
      ['POST', '/changes', '/changes', { text: rules.replace('100', '101') }],
      [
        'POST',
        '/replay',
        '/replay',
        { text: rules, log: '203.0.113.9 - - [18/Nov/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 5\n' },
      ],
      ['POST', '/trials', '/trials', { rule: 'new', text: 'id: new\nlimit: 1/s' }],
      ['DELETE', '/trials/new~trial', '/trials/{id}'],
      ['PUT', '/document', '/document', { text: rules.replace('100', '101'), version }],
      ['GET', '/versions'],
      ['GET', '/audit'],
      ['PUT', '/rules/all', '/rules/{id}', { text: 'id: all\nlimit: 1/s', version: 'old' }],
      ['PUT', '/document', '/document', { text: 'rules: 5', version: 'old' }],
      ['POST', '/explain', '/explain', {}],
      ['DELETE', '/trials/none', '/trials/{id}'],
    ]
    const described = new Set<string>()
    for (const [method, path, template = path, payload] of asked) {
      const { status, body, headers } = method === 'GET' ? await get(path) : await send(method, path, payload)
      const told = api.paths[`/api/v1${template}`][method.toLowerCase()].responses[status]
      expect(told, `${method} ${path} → ${status}`).toBeDefined()
      const type = String(headers['content-type']).split(';')[0]!
      const { schema } = told.content[type]
      const validate = ajv.compile({ ...schema, components: api.components })
      validate(body)
      expect(validate.errors, `${method} ${path} → ${status}`).toBeNull()
      described.add(`${method} ${template}`)
    }
    expect(described.size).toBeGreaterThan(12)
  })
})

describe('what a server cannot know', () => {
  it('services are answered with 503 until a process has reported, and are in the OpenAPI document', async () => {
    const processes: Processes = { ...watchLimiter(limiter), count: 2, reports: () => [] }
    await app.close()
    app = await create({ processes })
    const { status, body } = await get('/services')
    expect([status, body.detail]).toEqual([
      503,
      expect.stringContaining('No process that takes calls has reported yet'),
    ])
    expect(Object.keys((await get('/openapi.json')).body.paths)).toContain('/api/v1/services')
  })

  it('the metrics have those of the process and of Node', async () => {
    const { body } = await app.inject({ url: '/metrics', headers: { host: 'localhost' } })
    expect(body).toMatch(/^process_resident_memory_bytes \d+/m)
    expect(body).toMatch(/^process_cpu_seconds_total [\d.]+/m)
    expect(body).toMatch(/^nodejs_eventloop_lag_p99_seconds [\d.]+/m)
  })

  it('an admin API without a gateway offers no services, and reports its process without callers', async () => {
    await expect.poll(async () => (await get('/services')).status).toBe(404)
    const { paths } = (await get('/openapi.json')).body
    expect([paths['/api/v1/services'], paths['/api/v1/processes']]).toEqual([undefined, expect.anything()])
    expect(await get('/services')).toMatchObject({ status: 404, body: { detail: expect.stringContaining('services') } })
    await expect.poll(async () => (await get('/processes')).body.processes).toHaveLength(1)
    const [process] = (await get('/processes')).body.processes
    expect(process.load.rssBytes).toBeGreaterThan(0)
    expect(process.load.heapLimitBytes).toBeGreaterThan(process.load.heapUsedBytes)
    expect(process.callers).toBeUndefined()
  })
})

describe('any request to the admin API', () => {
  it('any request to the admin API gets an answer that is not a 500', async () => {
    const paths = [
      '/status',
      '/rules',
      '/figures',
      '/callers',
      '/explain',
      '/document',
      '/check',
      '/preview',
      '/rules/x',
      '/trials',
      '/trials/x',
      '/blocks',
      '/reset',
      '/none',
      '/openapi.json',
      '/schema',
      '/services',
      '/processes',
    ]
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom(
        'rules: [{id: a, limit: 1/s}]',
        '__proto__',
        'constructor',
        '&a [*a]',
        '- '.repeat(200),
        'local',
        'remote',
      ),
    )
    const word = fc.constantFrom(
      'where',
      'text',
      'version',
      'rule',
      'request',
      'method',
      'path',
      'headers',
      'ip',
      'key',
      'caller',
      'call',
      'for',
      '__proto__',
    )
    const value = fc.oneof(
      text,
      fc.integer(),
      fc.constant(null),
      fc.boolean(),
      fc.dictionary(fc.string(), text, { maxKeys: 3 }),
      fc.array(text, { maxLength: 3 }),
    )
    const body = fc.oneof(fc.dictionary(word, value), value)
    const query = fc.dictionary(
      fc.constantFrom('seconds', 'top', 'rule', 'unmask', 'where', 'version'),
      fc.oneof(fc.string(), fc.constantFrom('-1', '1e9', 'NaN', '0x10')),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'POST', 'PUT', 'DELETE'),
        fc.constantFrom(...paths),
        query,
        body,
        async (method, path, asked, payload) => {
          const search = new URLSearchParams(asked).toString()
          const reply = await app.inject({
            method: method as 'GET',
            url: `/api/v1${path}?${search}`,
            headers: { host: '127.0.0.1', ...(method === 'GET' ? {} : { 'content-type': 'application/json' }) },
            ...(method === 'GET' ? {} : { payload: JSON.stringify(payload) }),
          })
          expect(reply.statusCode, `${method} ${path}: ${reply.body}`).toBeLessThan(500)
          expect(await readFile(config, 'utf8')).toBe(rules)
        },
      ),
      { numRuns: randomRuns(100) },
    )
  })

  it.each([
    ['{', 'application/json', 400],
    ['', 'application/json', 400],
    ['{"__proto__": {"a": 1}}', 'application/json', 400],
    ['{}', 'text/plain', 415],
    ['a=1', 'application/x-www-form-urlencoded', 415],
    [`{"text": "${'x'.repeat(6 * 1024 * 1024)}"}`, 'application/json', 413],
  ])('the body %.20s sent as %s is refused with %i', async (payload, type, status) => {
    const reply = await ask({ method: 'POST', url: '/api/v1/check', payload, headers: { 'content-type': type } })
    expect(reply.status).toBe(status)
    expect(reply.headers['content-type']).toBe('application/problem+json')
  })
})
