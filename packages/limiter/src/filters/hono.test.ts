import { Hono } from 'hono'
import { afterEach, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { diana, rateLimit, verdictOf } from './hono.ts'

let limiter: Limiter

afterEach(() => limiter.close())

async function mount(options: LimiterOptions): Promise<Hono> {
  limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options })
  const app = new Hono()
  app.use(diana(limiter, { peer: context => context.req.header('x-peer') }))
  return app
}

const places = [{ id: 'places', algorithm: 'concurrency' as const, limit: 1 }]
const free = async (): Promise<number> => (await limiter.peek({ method: 'GET', path: '/' })).decisions[0]!.remaining

// without a server of Node's below, as on Bun, Deno and workers
test('the filter of Hono decides calls on any runtime with fetch', async () => {
  const app = await mount({ rules: [{ id: 'all', limit: '1/h', algorithm: 'fixed-window' }] })
  app.get('/own', () => new Response('own response', { headers: { 'x-own': '1' } }))
  const passed = await app.request('/own')
  expect([passed.status, await passed.text(), passed.headers.get('x-own')]).toEqual([200, 'own response', '1'])
  expect(passed.headers.get('ratelimit-policy')).toBe('"all";q=1;w=3600')
  const refused = await app.request('/own')
  expect([refused.status, refused.headers.get('content-type')]).toEqual([503, 'application/problem+json'])
  expect(await refused.json()).toMatchObject({ rule: 'all', status: 503 })
  expect((await app.request('/nowhere')).status).toBe(503)
})

test('the filter of Hono reads the address from each kind of server', async () => {
  limiter = await createLimiter({ rules: [{ id: 'each', by: 'ip', limit: '1/h' }] })
  const app = new Hono().use(diana(limiter)).get('/', context => context.text('served'))
  const asked = async (env: object): Promise<number> => (await app.request('/', {}, env)).status
  expect(await asked({ requestIP: () => ({ address: '203.0.113.1' }) })).toBe(200)
  expect(await asked({ server: { requestIP: () => ({ address: '203.0.113.1' }) } })).toBe(503)
  expect(await asked({ remoteAddr: { hostname: '203.0.113.2' } })).toBe(200)
  expect(await asked({ remoteAddr: { hostname: '203.0.113.1' } })).toBe(503)
  await limiter.close()
  const told = await mount({ rules: [{ id: 'each', by: 'ip', limit: '1/h' }] })
  told.get('/', context => context.text('served'))
  const from = async (peer: string): Promise<number> =>
    (await told.request('/', { headers: { 'x-peer': peer } })).status
  expect([await from('203.0.113.1'), await from('203.0.113.2'), await from('203.0.113.1')]).toEqual([200, 200, 503])
})

test('the filter of Hono releases a slot when the last chunk of the answer is read', async () => {
  const app = await mount({ rules: places })
  const pieces = ['one', 'two']
  app.get('/', () => {
    const body = new ReadableStream({
      pull(controller) {
        const piece = pieces.shift()
        if (piece === undefined) controller.close()
        else controller.enqueue(new TextEncoder().encode(piece))
      },
    })
    return new Response(body, { status: 201, headers: { 'x-own': '1' } })
  })
  const answer = await app.request('/')
  expect([answer.status, answer.headers.get('x-own'), await free()]).toEqual([201, '1', 0])
  expect(await answer.text()).toBe('onetwo')
  expect(await free()).toBe(1)
})

test('the filter of Hono releases a slot when reading stops, when there is no body, and when the service fails', async () => {
  const app = await mount({ rules: places })
  app.get(
    '/endless',
    () => new Response(new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(9)) })),
  )
  app.get('/empty', context => context.body(null, 204))
  app.get('/broken', () => {
    throw new Error('broken')
  })
  app.onError((_error, context) => context.text('sorry', 500))
  const endless = await app.request('/endless')
  expect(await free()).toBe(0)
  await endless.body!.cancel()
  expect(await free()).toBe(1)
  expect([(await app.request('/empty')).status, await free()]).toEqual([204, 1])
  const broken = await app.request('/broken')
  await broken.text()
  expect([broken.status, await free()]).toEqual([500, 1])
  const controller = new AbortController()
  await app.request('/endless', { signal: controller.signal })
  expect(await free()).toBe(0)
  controller.abort()
  await vi.waitFor(async () => expect(await free()).toBe(1))
})

test('a route of Hono has its own rules, and its paths are one resource, also for the filter of the application', async () => {
  const app = await mount({ rules: [{ id: 'each', by: 'resource', limit: '2/h' }] })
  app.get('/users/:id', rateLimit(limiter, { rule: { id: 'three', limit: '3/h' } }), context => {
    return context.text(verdictOf(context)!.decisions[0]!.rule)
  })
  app.get('/a', context => context.text('a'))
  const answers = [await app.request('/users/1'), await app.request('/users/2'), await app.request('/users/3')]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 503])
  expect(await answers[0]!.text()).toBe('three')
  expect((await app.request('/a')).status).toBe(200)
})
