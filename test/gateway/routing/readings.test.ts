import { createHash } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

type Send = (target: string, ...lines: readonly string[]) => Promise<number>

const sender =
  (port: number): Send =>
  async (target, ...lines) => {
    const host = lines.some(line => /^host:/i.test(line)) ? [] : ['Host: a']
    const head = [`GET ${target} HTTP/1.1`, ...host, 'Connection: close', ...lines].join('\r\n')
    return statusesIn(await sendRaw(port, `${head}\r\n\r\n`))[0] ?? 0
  }

async function guardService(document: object) {
  const service = await rig.serve()
  const { gateway, ...words } = { gateway: {}, ...document }
  const guarded = await rig.guard({ ...words, gateway: { routes: [{ to: service.url }], ...gateway } })
  return { send: sender(guarded.port), received: service.received }
}

const sha256 = (key: string): string => createHash('sha256').update(key).digest('hex')
const shopOnly = { use: 'api-key', keys: [{ name: 'shop', sha256: sha256('k'), paths: ['/orders', '/caf%c3%a9'] }] }

describe('a key of the api-key filter opens no path outside its own', () => {
  test.each([
    ['/orders', 200],
    ['/orders/7;v=1?x=/../admin', 200],
    ['/orders/a%2Fb', 200],
    ['/orders;v=1/7', 400],
    ['/orders/7;v=1', 200],
    ['/x/../orders/7', 200],
    ['/caf%C3%A9/1', 200],
    ['/orders/..%2Fadmin', 400],
    ['/orders/..%2fadmin', 400],
    ['/orders%2F..%2Fadmin', 400],
    ['/orders/..%5Cadmin', 400],
    ['/orders/x%5Cy%2F..%2F..%2F..%2Fadmin', 400],
    ['/orders/..;/admin', 400],
    ['/orders/%2e%2e;x%2Fadmin', 400],
    ['/orders;%2F..%2Fadmin', 400],
    ['/orders/../admin', 403],
    ['/orders\\..\\admin', 403],
    ['/orders%2Fadmin', 403],
    ['/ordersadmin', 403],
    ['/ORDERS', 403],
    ['/%2Forders', 403],
    ['http://a/orders/../admin', 403],
  ])('%s gives %i', async (target, status) => {
    const { send, received } = await guardService({ gateway: { filters: [shopOnly] } })
    expect(await send(target, 'X-Api-Key: k')).toBe(status)
    expect(received).toHaveLength(status === 200 ? 1 : 0)
  })
})

describe('a route that rewrites its path takes whole segments out', () => {
  test.each([
    ['/v1/shop/x', '/shop/x'],
    ['/v1/shop', '/shop'],
    ['/v1/shop?a=/b', '/shop?a=/b'],
    ['/v1/shop/z;w?q', '/shop/z;w?q'],
    ['/v1/shop;-admin', '/shop'],
    ['/v1/shop;c?d=/e/f', '/shop?d=/e/f'],
  ])('%s reaches the service as %s', async (target, forwarded) => {
    const service = await rig.serve()
    const other = await rig.serve()
    const routes = [{ path: '/v1/shop', rewrite: '/shop', to: service.url }, { to: other.url }]
    const { port } = await rig.guard({ gateway: { routes } })
    expect(await sender(port)(target)).toBe(200)
    expect([service.received.map(({ url }) => url), other.received]).toEqual([[forwarded], []])
  })

  test.each(['/v1;xxxx-admin/shop/x', '/v1;x/shop/z', '/v1%3Bx/shop/z'])('%s is refused', async target => {
    const service = await rig.serve()
    const { port } = await rig.guard({ gateway: { routes: [{ path: '/v1/shop', rewrite: '/shop', to: service.url }] } })
    expect([await sender(port)(target), service.received]).toEqual([400, []])
  })

  test('a route is found however its path is spelled in the file', async () => {
    const service = await rig.serve()
    const { port } = await rig.guard({ gateway: { routes: [{ path: '/caf%c3%a9/%7Euser', to: service.url }] } })
    expect(await sender(port)('/caf%C3%A9/~user/1')).toBe(200)
    expect(await sender(port)('/caf')).toBe(404)
  })
})

describe('a header that Connection names', () => {
  const rules = [{ id: 'each', by: 'account', limit: '1/h' }]
  const identify = { account: ['header:x-account-id'] }

  test('a header that Connection names is neither counted nor forwarded', async () => {
    const { send, received } = await guardService({ identify, rules })
    const statuses: number[] = []
    for (const account of ['a', 'b', 'c']) {
      statuses.push(await send('/', `X-Account-Id: ${account}`, 'Connection: X-Account-Id'))
    }
    expect(statuses).toEqual([200, 503, 503])
    expect(received[0]!.headers).not.toHaveProperty('x-account-id')
  })

  test('Connection cannot remove headers that filters write, or forwarding headers', async () => {
    const { send, received } = await guardService({ gateway: { filters: [shopOnly] } })
    const named =
      'Connection: x-api-key-name, content-length, host, x-forwarded-for, X-Forwarded-Proto, transfer-encoding'
    expect(await send('/orders', 'X-Api-Key: k', named, 'X-Forwarded-For: 203.0.113.9')).toBe(200)
    expect(received[0]!.headers).toMatchObject({
      'x-api-key-name': 'shop',
      'x-forwarded-for': '203.0.113.9, 127.0.0.1',
      'x-forwarded-proto': 'http',
    })
  })
})

describe('a header whose name has more than letters, digits and hyphens', () => {
  test.each(['X_Account_Id', 'x_account-id', 'X.Account.Id', "X'Account-Id", '_x-account-id'])(
    '%s never reaches a service',
    async name => {
      const { send, received } = await guardService({ gateway: { filters: [shopOnly] } })
      const lines = [`${name}: mallory`, 'X_Api_Key_Name: admin', 'X_Forwarded_For: 1.1.1.1', 'X-Kept: 1']
      expect(await send('/orders', 'X-Api-Key: k', ...lines)).toBe(200)
      const names = Object.keys(received[0]!.headers)
      expect(names.filter(one => /[^a-z\d-]/.test(one))).toEqual([])
      expect(names).toContain('x-kept')
    },
  )
})

describe('the host', () => {
  test.each([
    '.example.com',
    '..example.com',
    'a..example.com',
    'example.com..',
    '.',
    '',
    ':80',
    'user@api.example.com',
    'api.example.com:http',
    'api.example.com:80:90',
    'api.example.com/x',
    'api.example.com?x',
    'api.example.com#x',
    'api example.com',
    'api.example.com, b.example.com',
    '%61pi.example.com',
    '*.example.com',
    '[::1',
    '[::g]',
    '[1.2.3.4]',
    '::1',
    'x'.repeat(300),
    'caf\u00e9.example.com',
  ])('the invalid host %j gets a 400', async host => {
    const { send, received } = await guardService({})
    expect(await send('/', `Host: ${host}`)).toBe(400)
    expect(received).toEqual([])
  })

  test.each([
    [
      'api.example.com',
      'API.Example.COM',
      'api.example.com.',
      'api.example.com:80',
      'api.example.com.:80',
      'api.example.com:',
    ],
    ['[2001:db8::1]', '[2001:DB8:0:0::1]:80', '[2001:db8:0:0:0:0:0:1]'],
  ])('the host %s is the same for routes, rules and keys in any spelling', async (...hosts) => {
    const named = await rig.serve()
    const other = await rig.serve()
    const [host] = hosts
    const rules = [
      { id: 'named', match: { host }, limit: '1/h' },
      { id: 'each', by: 'host', limit: '1/h' },
    ]
    const { port } = await rig.guard({ rules, gateway: { routes: [{ host, to: named.url }, { to: other.url }] } })
    const statuses: number[] = []
    for (const one of hosts) statuses.push(await sender(port)('/', `Host: ${one}`))
    expect(statuses).toEqual([200, ...hosts.slice(1).map(() => 503)])
    expect([named.received.length, other.received.length]).toEqual([1, 0])
  })

  test('every host that a route of *.example.com accepts matches rules for *.example.com', async () => {
    const named = await rig.serve()
    const rules = [{ id: 'named', match: { host: '*.example.com' }, limit: '1/h' }]
    const { port } = await rig.guard({ rules, gateway: { routes: [{ host: '*.example.com', to: named.url }] } })
    expect(await sender(port)('/', 'Host: a.example.com')).toBe(200)
    for (const host of ['B.example.com', 'a.b.example.com:1', '_x.example.com.', '-.example.com']) {
      expect([host, await sender(port)('/', `Host: ${host}`)]).toEqual([host, 503])
    }
  })

  test('the host of an absolute target wins over the Host header', async () => {
    const named = await rig.serve()
    const other = await rig.serve()
    const routes = [{ host: 'b.example.com', keepHost: true, to: named.url }, { to: other.url }]
    const { port } = await rig.guard({ gateway: { routes } })
    expect(await sender(port)('http://b.example.com:80/x', 'Host: a')).toBe(200)
    expect(named.received.map(({ url, headers }) => [url, headers.host])).toEqual([['/x', 'b.example.com:80']])
    expect(await sender(port)('http://u@b.example.com/x')).toBe(400)
    expect(other.received).toEqual([])
  })
})
