import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { listen } from '@test/filters/listen'
import express, { type Express, type Request, Router } from 'express'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { ask, type FilterClient, httpClient, type Reply } from '../testing/filters/client.ts'
import { diana, expressFramework, type FilterOptions, rateLimit, verdictOf } from './express.ts'

const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.restoreAllMocks()
})

async function limit(options: LimiterOptions): Promise<Limiter> {
  const limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options })
  closing.push(() => limiter.close())
  return limiter
}

async function serve(app: Express): Promise<FilterClient> {
  const { port, close } = await listen(createServer(app))
  const client = httpClient(port, false)
  closing.push(close, () => client.close())
  return client
}

async function statuses(client: FilterClient, ...paths: string[]): Promise<number[]> {
  const list: number[] = []
  for (const path of paths) list.push((await ask(client, { path })).status)
  return list
}

const left = ({ headers }: Reply): string | undefined => /r=(\d+)/.exec(String(headers.ratelimit))?.[1]

describe('a path in Express', () => {
  const rules = [{ id: 'login', match: { path: '/Api/Login' }, limit: '1/h' }]
  const app = (limiter: Limiter, settings: string[] = []): Express => {
    const made = express()
    for (const setting of settings) made.enable(setting)
    return made.use(diana(limiter)).get('/api/login', (_request, response) => void response.send('in'))
  }

  test('a path in Express is case-insensitive by default, also in rules', async () => {
    const client = await serve(app(await limit({ rules })))
    expect(await statuses(client, '/api/login', '/API/login', '/api/LOGIN/', '/api/login?x')).toEqual([
      200, 503, 503, 503,
    ])
  })

  test('path and address are not computed if no rule needs them', async () => {
    const path = vi.spyOn(expressFramework, 'path')
    const peer = vi.spyOn(expressFramework, 'peer')
    const byHeader = [{ id: 'account', by: 'header:x-account-id', limit: '1/h' }]
    const client = await serve(app(await limit({ rules: byHeader })))
    expect(await statuses(client, '/api/login', '/api/login')).toEqual([200, 503])
    expect(path).not.toHaveBeenCalled()
    expect(peer).not.toHaveBeenCalled()
    await serve(app(await limit({ rules }))).then(other => statuses(other, '/api/login'))
    expect(path).toHaveBeenCalledOnce()
  })

  // `case sensitive routing` says nothing of the routers and applications that are mounted, which ignore case by default:
  // a filter that asked the application let `/auth/Login` pass a rule about `/auth/login`
  test.each(['router', 'application'])(
    'a path in Express with case sensitive routing is one in every case, since a mounted %s may ignore case',
    async kind => {
      const limiter = await limit({ rules })
      const inner = (kind === 'router' ? Router() : express()) as Router
      inner.get('/login', (_request, response) => void response.send('in'))
      const made = express().enable('case sensitive routing').use(diana(limiter)).use('/api', inner)
      const client = await serve(made)
      expect(await statuses(client, '/api/login', '/api/Login', '/api/LOGIN', '/api/login/')).toEqual([
        200, 503, 503, 503,
      ])
    },
  )

  test('a path in Express differs by case if the filter is configured so', async () => {
    const made = express().enable('case sensitive routing')
    made.use(diana(await limit({ rules }), { caseSensitive: true }))
    made.get('/api/login', (_request, response) => void response.send('in'))
    const client = await serve(made)
    expect(await statuses(client, '/api/login', '/api/login', '/Api/Login', '/Api/Login')).toEqual([200, 200, 404, 503])
  })

  test('a path in Express that a middleware has rewritten is judged as it arrived and as the router gets it', async () => {
    const rules = [
      { id: 'as-served', match: { path: '/x' }, limit: '1/h' },
      { id: 'as-called', match: { path: '/v1/y' }, limit: '1/h' },
      { id: 'by-key', match: { path: '/keys' }, by: 'query:key', limit: '1/h', missing: 'skip' as const },
    ]
    const made = express().use((request, _response, next) => {
      request.url = request.url.replace(/^\/v\d/, '').replace(/^\/keys\/(\w+).*/, '/keys?key=$1')
      next()
    })
    made.use(diana(await limit({ rules })), (_request, response) => void response.send('in'))
    const client = await serve(made)
    expect(await statuses(client, '/x', '/v1/x', '/v2/x', '/v3/%78')).toEqual([200, 503, 503, 503])
    expect(await statuses(client, '/v1/y', '/v1/y', '/v2/y')).toEqual([200, 503, 200])
    expect(await statuses(client, '/keys/a', '/keys/a?key=b', '/keys/b', '/keys?key=b')).toEqual([200, 503, 200, 503])
  })

  test('a path in a mounted router of Express is the whole path', async () => {
    const limiter = await limit({ rules: [{ id: 'a', match: { path: '/v1/a' }, limit: '1/h' }] })
    const router = Router()
      .use(diana(limiter))
      .get('/a', (_request, response) => void response.send('a'))
    const client = await serve(express().use('/v1', router))
    expect(await statuses(client, '/v1/a', '/v1/a')).toEqual([200, 503])
  })

  test('a path with dots counts both as written and as resolved in Express', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'diana-express-'))
    closing.push(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'big.txt'), 'big')
    const rules = [
      { id: 'file', match: { path: '/big.txt' }, limit: '1/h' },
      { id: 'deep', match: { path: '/deep/**' }, limit: '1/h' },
    ]
    const app = express().use(diana(await limit({ rules })))
    app.get('/deep/*rest', (_request, response) => void response.send('deep')).use(express.static(folder))
    const { port, close } = await listen(createServer(app))
    closing.push(close)
    const client = httpClient(port, false)
    closing.push(() => client.close())
    expect(await statuses(client, '/big.txt', '/x/../big.txt', '/x%2f..%2fbig.txt', '//big.txt', '/%62ig.txt')).toEqual(
      [200, 503, 503, 503, 503],
    )
    expect(await statuses(client, '/deep/a', '/deep/../elsewhere', '/deep/x/../../elsewhere')).toEqual([200, 503, 503])
  })
})

describe('a route in Express', () => {
  test('a route in Express has rules of its own besides those of the application', async () => {
    const limiter = await limit({
      rules: [
        { id: 'all', limit: '9/h' },
        { id: 'login', match: 'none', by: 'account', limit: '1/h' },
      ],
    })
    const account = ({ query }: Request) => ({ account: String(query.as) })
    const app = express().use(diana(limiter))
    app.get('/login', rateLimit(limiter, { rule: 'login', attributes: account }), (_request, response) => {
      response.send('in')
    })
    const client = await serve(app)
    expect(await statuses(client, '/login?as=ann', '/login?as=bob', '/login?as=ann')).toEqual([200, 200, 503])
  })

  test('a route in Express counts the calls to all its paths as one resource', async () => {
    const limiter = await limit({ rules: [] })
    const filter = rateLimit(limiter, { rule: { id: 'users', by: 'resource', limit: '2/h' } })
    const router = Router().get('/users/:id', filter, (_request, response) => void response.send('user'))
    const client = await serve(express().use('/v1', router))
    expect(await statuses(client, '/v1/users/1', '/V1/users/2', '/v1/Users/3')).toEqual([200, 200, 503])
  })

  test('a route in Express may have a cost, and settle it at the end', async () => {
    const limiter = await limit({ rules: [{ id: 'tokens', match: 'none', limit: '10/h' }] })
    const filter = rateLimit(limiter, { rule: 'tokens', cost: (_call, request: Request) => Number(request.query.max) })
    const app = express().get('/chat', filter, (request, response) => {
      verdictOf(request)!.settle(2)
      response.send('said')
    })
    const client = await serve(app)
    const told = [await ask(client, { path: '/chat?max=6' }), await ask(client, { path: '/chat?max=8' })]
    expect(told.map(left)).toEqual(['4', '0'])
    expect(await statuses(client, '/chat?max=7', '/chat?max=6')).toEqual([503, 200])
  })
})

describe('an option', () => {
  async function seen(options: FilterOptions<Request>, rule: object): Promise<(path: string) => Promise<Reply>> {
    const app = express().use(diana(await limit({ rules: [{ id: 'all', limit: '5/h', ...rule }] }), options))
    const client = await serve(app.get('/:id', (_request, response) => void response.send('served')))
    return path => ask(client, { path })
  }

  test.each([
    [3, '2'],
    [() => 3, '2'],
    [() => Number.NaN, '4'],
    [() => -1, '4'],
    [() => 0.5, '4'],
    [() => 2 ** 53, '4'],
    [() => '3' as never, '4'],
    [
      () => {
        throw new Error('no cost')
      },
      '4',
    ],
    [0, '5'],
  ])('the option cost: %s leaves %s of 5', async (cost, remaining) => {
    const told: unknown[] = []
    const get = await seen({ cost, onError: error => told.push(error) }, {})
    const reply = await get('/a')
    expect([reply.status, left(reply)]).toEqual([200, remaining])
  })

  test('a cost beyond the limit never passes', async () => {
    const get = await seen({ cost: 6 }, {})
    expect((await get('/a')).status).toBe(503)
  })

  test('an attributes function that throws does not exempt the caller', async () => {
    const told: unknown[] = []
    const attributes = (): never => {
      throw new Error('no session')
    }
    const get = await seen({ attributes, onError: error => told.push(error) }, { limit: '1/h', by: 'ip' })
    expect([(await get('/a')).status, (await get('/a')).status]).toEqual([200, 503])
    expect(told).toEqual([new Error('no session'), new Error('no session')])
  })

  test('resource: path counts each path, and caseSensitive distinguishes /A and /a', async () => {
    const get = await seen({ resource: 'path', caseSensitive: true }, { limit: '1/h', by: 'resource' })
    const replies = [await get('/a'), await get('/A'), await get('/a')]
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 503])
  })

  test('onError is called when Diana fails, and an error in it has no effect', async () => {
    const limiter = await limit({ rules: [{ id: 'all', limit: '1/h' }] })
    const told: string[] = []
    const onError = (error: unknown, request: Request): never => {
      told.push(`${(error as Error).message.slice(0, 24)} at ${request.path}`)
      throw new Error('and again')
    }
    const app = express().use(diana(limiter, { onError }))
    const client = await serve(app.get('/a', (_request, response) => void response.send('a')))
    await limiter.close()
    expect(await statuses(client, '/a')).toEqual([200])
    expect(told).toEqual(['this limiter was closed; at /a'])
  })
})
