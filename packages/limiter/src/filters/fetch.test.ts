import { afterEach, describe, expect, it } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'
import { diana, type FetchInfo, rateLimit, verdictOf } from './fetch.ts'

const closing: Limiter[] = []
afterEach(async () => {
  for (const limiter of closing.splice(0)) await limiter.close()
})

async function create(options: LimiterOptions): Promise<Limiter> {
  const limiter = await createLimiter({ clock: () => 1_700_000_000_000, ...options })
  closing.push(limiter)
  return limiter
}

const request = (path = '/', init: RequestInit = {}) => new Request(`http://example.com${path}`, init)
const perAddress = { rules: [{ id: 'per-address', by: 'ip', limit: '1/h' }] }

describe('the filter for fetch', () => {
  it('a request with local rules is decided without a promise, and refused with a Response', async () => {
    const limit = diana(await create(perAddress))
    const first = request()
    expect(limit(first, '203.0.113.9')).toBeUndefined()
    const answer = limit.after(first, new Response('served'))
    expect(answer.headers.get('ratelimit')).toMatch(/^"per-address";r=0/)
    const refused = limit(request(), '203.0.113.9') as Response
    expect([refused.status, refused.headers.get('content-type')]).toEqual([503, 'application/problem+json'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await refused.json()).toMatchObject({ rule: 'per-address' })
  })

  const address = '203.0.113.9'
  const infos: readonly (readonly [string, FetchInfo])[] = [
    ['a text', address],
    ['{ ip }', { ip: address }],
    ['the server of Bun', { requestIP: () => ({ address, family: 'IPv4', port: 1 }) }],
    ['the info of Deno', { remoteAddr: { transport: 'tcp', hostname: address, port: 1 } }],
    ['the event of SvelteKit', { getClientAddress: () => address }],
    ['the bindings of a server of Node', { incoming: { socket: { remoteAddress: address } } }],
    ['an object that has the server', { server: { requestIP: () => ({ address }) } }],
  ]
  it.each(infos)('the address is found in %s', async (_name, info) => {
    const limiter = await create(perAddress)
    // a request of Node has the headers itself
    const { incoming, ...rest } = info as { incoming?: object }
    await diana(limiter)(
      request(),
      typeof info === 'string' ? info : { ...rest, ...(incoming && { incoming: { ...incoming, headers: {} } }) },
    )
    expect((await limiter.get('per-address', address)).allowed).toBe(false)
  })

  it.each([undefined, {}, null, 5, { requestIP: () => null }, { params: {} }])(
    'without an address, as with %o, requests are counted together',
    async info => {
      const limit = diana(await create(perAddress))
      expect(limit(request(), info as never)).toBeUndefined()
      expect(limit(request(), info as never)).toBeInstanceOf(Response)
    },
  )

  it('peer reads the address that no server gives, and trustProxy believes a header', async () => {
    const byHeader = diana(await create(perAddress), { peer: one => one.headers.get('cf-connecting-ip') ?? undefined })
    const from = (ip: string) => request('/', { headers: { 'cf-connecting-ip': ip } })
    expect([byHeader(from('203.0.113.1')), byHeader(from('203.0.113.2'))]).toEqual([undefined, undefined])
    expect(byHeader(from('203.0.113.1'))).toBeInstanceOf(Response)
    const trusting = diana(await create({ ...perAddress, trustProxy: 1 }))
    const through = (ip: string) => trusting(request('/', { headers: { 'x-forwarded-for': ip } }), '10.0.0.1')
    expect([through('203.0.113.1'), through('9.9.9.9, 203.0.113.2')]).toEqual([undefined, undefined])
    expect(through('8.8.8.8, 203.0.113.2')).toBeInstanceOf(Response)
  })

  it('rules see the path that the handler sees: dots and escapes are resolved', async () => {
    const limit = diana(await create({ rules: [{ id: 'login', match: { path: '/login' }, limit: '0/h' }] }))
    const paths = ['/login', '/x/../login', '/%6cogin', '/LOGIN', '/login?a=/b', '/a/%2e%2e/login', '\\login']
    for (const path of paths) expect([path, limit(request(path)) instanceof Response]).toEqual([path, true])
    expect(limit(request('/other'))).toBeUndefined()
  })

  it('headers are added to answers that cannot be changed, such as redirects', async () => {
    const limit = diana(await create(perAddress))
    const one = request()
    limit(one)
    const answer = limit.after(one, Response.redirect('http://example.com/there', 302))
    expect([answer.status, answer.headers.get('location')]).toEqual([302, 'http://example.com/there'])
    expect(answer.headers.get('ratelimit-policy')).toBe('"per-address";q=1;w=3600')
  })

  it('wrap passes on what stands beside the request, and what the handler throws', async () => {
    const limit = diana(await create({ rules: [{ id: 'all', limit: '9/h' }] }))
    const handle = limit.wrap((_request, info: { ip: string }, more: number) => new Response(`${info.ip} ${more}`))
    expect(await (await handle(request(), { ip: '::1' }, 7)).text()).toBe('::1 7')
    const broken = limit.wrap(() => {
      throw new Error('broken')
    })
    expect(() => broken(request())).toThrow('broken')
    await expect(limit.wrap(async () => Promise.reject(new Error('late')))(request())).rejects.toThrow('late')
  })

  const slot = { rules: [{ id: 'slots', limit: 1, algorithm: 'concurrency' }] } as const
  it.each([
    ['its body has been read', async (answer: Response) => void (await answer.text())],
    ['its body is canceled', async (answer: Response) => void (await answer.body!.cancel())],
  ])('a slot is free again when %s, and not before', async (_name, end) => {
    const limiter = await create(slot)
    const handle = diana(limiter).wrap(() => new Response('served'))
    const first = await handle(request())
    expect((await handle(request())).status).toBe(503)
    await end(first)
    expect((await handle(request())).status).toBe(200)
  })

  it('a slot is free again when the handler fails, has no body, or the caller leaves', async () => {
    const limiter = await create(slot)
    const limit = diana(limiter)
    const failing = limit.wrap(() => {
      throw new Error('broken')
    })
    expect(() => failing(request())).toThrow()
    expect((await limit.wrap(() => new Response(null, { status: 204 }))(request())).status).toBe(204)
    const leaving = new AbortController()
    expect(limit(request('/', { signal: leaving.signal }))).toBeUndefined()
    expect(limit(request())).toBeInstanceOf(Response)
    leaving.abort()
    expect(limit(request())).toBeUndefined()
  })

  it('a failed handler that is not wrapped is reported by after(request)', async () => {
    const limiter = await create({ rules: [{ id: 'failures', limit: '1/h', countWhen: 'failed' }] })
    const limit = diana(limiter)
    const [one, two] = [request(), request()]
    limit(one)
    await limit.after(one, new Response('fine')).text()
    expect(limit(two)).toBeUndefined()
    expect(limit.after(two)).toBeUndefined()
    expect((await limiter.get('failures', [])).allowed).toBe(false)
  })

  it('a refusal of HEAD has no body, and verdictOf gives the verdict', async () => {
    const limit = rateLimit(await create({ rules: [] }), { rule: { id: 'none', limit: '0/h' } })
    const one = request('/', { method: 'HEAD' })
    expect((limit(one) as Response).body).toBeNull()
    expect(verdictOf(one)).toMatchObject({ allowed: false, rule: 'none' })
  })

  it('two filters on one request are decided together', async () => {
    const wide = await create({ rules: [{ id: 'wide', limit: '9/h' }] })
    const narrow = await create({ rules: [{ id: 'narrow', limit: '1/h' }] })
    const handle = diana(wide).wrap(diana(narrow).wrap(() => new Response('served')))
    await handle(request())
    const refused = await handle(request())
    expect([refused.status, refused.headers.get('ratelimit-policy')]).toEqual([
      503,
      '"narrow";q=1;w=3600, "wide";q=9;w=3600',
    ])
    expect((await wide.get('wide', [])).decisions[0]!.remaining).toBe(8)
  })

  it('a value that is no Request and no handler is an error that names the remedy', async () => {
    const limit = diana(await create(perAddress))
    expect(() => limit({ url: '/' } as never)).toThrow('this filter takes a Request')
    expect(() => limit.wrap(undefined as never)).toThrow('wrap was given no handler')
  })
})
