import { execFileSync } from 'node:child_process'
import { copyFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { Authority } from '@test/tls/authority'
import { startTlsGateway, type TlsGateway } from '@test/tls/tls-gateway'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'

let authority: Authority
let stranger: Authority
let service: Server
let gateway: TlsGateway | undefined
const received: IncomingHttpHeaders[] = []
const path = (name: string): string => authority.path(name)

beforeAll(async () => {
  authority = new Authority()
  stranger = new Authority()
  authority.issue('one')
  authority.issue('two')
  authority.issue('shop', { names: 'DNS:shop.test,DNS:*.shop.test' })
  authority.issue('late', { days: -1 })
  const names = 'DNS:billing.test,URI:spiffe://test/billing,email:billing@test.test,email:second@test.test'
  authority.issue('billing', { subject: '/O=Test/CN=billing', names })
  authority.issue('orders')
  stranger.issue('billing')
  service = createServer((request, response) => {
    received.push(request.headers)
    response.end('served')
  })
  await new Promise<void>(resolve => service.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await gateway?.close()
  received.length = 0
})
afterAll(() => {
  authority.close()
  stranger.close()
  service.close()
})

async function start(tls: object, more: object = {}): Promise<TlsGateway> {
  const to = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  gateway = await startTlsGateway(authority, { gateway: { tls, routes: [{ to }] }, ...more })
  return gateway
}

function use(cert: string, key: string): void {
  copyFileSync(path(`${key}.key`), path('key.pem'))
  copyFileSync(path(`${cert}.pem`), path('cert.pem'))
}

const usual = { cert: 'cert.pem', key: 'key.pem' }

it('the gateway presents its certificate, the new one when the files change, and the old one if the new files do not match', async () => {
  use('one', 'one')
  const { shown, log } = await start(usual)
  expect(await shown()).toBe('one')
  use('two', 'one')
  await expect.poll(() => log.join(), { timeout: 5000 }).toContain('is not that of the certificate')
  expect(await shown()).toBe('one')
  use('two', 'two')
  await expect.poll(shown, { timeout: 5000 }).toBe('two')
})

it.each([
  ['a symbolic link to itself', () => symlinkSync(path('cert.pem'), path('cert.pem')), 'ELOOP'],
  ['a pipe', () => execFileSync('mkfifo', [path('cert.pem')]), 'not a regular file'],
])('a certificate that turns into %s leaves the old one in use', async (_, replace, trouble) => {
  use('one', 'one')
  const { shown, log } = await start(usual)
  rmSync(path('cert.pem'))
  replace()
  await expect.poll(() => log.join(), { timeout: 5000 }).toContain(trouble)
  expect(await shown()).toBe('one')
  rmSync(path('cert.pem'))
})

it.each([
  ['a key of another certificate', () => use('one', 'two'), 'is not that of the certificate'],
  ['no PEM', () => writeFileSync(path('cert.pem'), 'text'), 'is not a certificate in PEM'],
  ['no file', () => rmSync(path('cert.pem')), 'cannot be read (ENOENT)'],
])('a gateway does not start with %s', async (_, spoil, message) => {
  use('one', 'one')
  spoil()
  await expect(start(usual)).rejects.toThrow(message)
})

it('a gateway starts with an expired certificate, and reports the date', async () => {
  const { shown, warnings } = await start({ cert: 'late.pem', key: 'late.key' })
  expect(await shown()).toBe('late')
  expect(warnings.join('\n')).toMatch(/late\.pem expired on \d{4}-\d\d-\d\d/)
})

describe('several certificates', () => {
  const certificates = [
    usual,
    { cert: 'shop.pem', key: 'shop.key' },
    { cert: 'two.pem', key: 'two.key', names: ['two.test', '*.two.test'] },
  ]

  it('of several certificates, a caller gets the one with the requested name, or the first', async () => {
    use('one', 'one')
    const { shown } = await start({ certificates })
    const cases = { 'shop.test': 'shop', 'A.Shop.test': 'shop', 'two.test': 'two', 'x.two.test': 'two' }
    for (const [name, cn] of Object.entries(cases)) expect([name, await shown(name)]).toEqual([name, cn])
    for (const name of ['other.test', 'a.b.shop.test', 'two']) expect([name, await shown(name)]).toEqual([name, 'one'])
    expect(await shown()).toBe('one')
  })

  it('each of several certificates is read again when its files change', async () => {
    use('one', 'one')
    copyFileSync(path('shop.pem'), path('named.pem'))
    copyFileSync(path('shop.key'), path('named.key'))
    const { shown } = await start({ certificates: [usual, { cert: 'named.pem', key: 'named.key', names: 'n.test' }] })
    expect(await shown('n.test')).toBe('shop')
    copyFileSync(path('two.pem'), path('named.pem'))
    copyFileSync(path('two.key'), path('named.key'))
    await expect.poll(() => shown('n.test'), { timeout: 5000 }).toBe('two')
    expect(await shown('other.test')).toBe('one')
  })

  it('one unreadable certificate of several keeps the gateway from starting', async () => {
    use('one', 'one')
    const message = 'none.pem cannot be read (ENOENT)'
    await expect(start({ certificates: [usual, { cert: 'none.pem', key: 'two.key' }] })).rejects.toThrow(message)
  })
})

describe('callers with certificates', () => {
  const identity = (name: string, from: Authority = authority) => ({
    cert: from.pem(`${name}.pem`),
    key: from.pem(`${name}.key`),
  })
  const mutual = (clients: object) => ({ cert: 'one.pem', key: 'one.key', clients: { ca: 'ca.pem', ...clients } })

  it('callers with certificates are served, and callers without one or with one of another authority are not', async () => {
    const { get } = await start(mutual({}))
    expect(await get('/', identity('billing'))).toBe('200 served')
    expect(await get('/')).toMatch(/^E/)
    expect(await get('/', identity('billing', stranger))).toMatch(/^E/)
    expect(await get('/', identity('late'))).toMatch(/^E/)
    expect(received).toHaveLength(1)
  })

  it('callers need no certificate if it is optional, but a wrong one is still refused', async () => {
    const { get } = await start(mutual({ require: false }))
    expect(await get('/')).toBe('200 served')
    expect(await get('/', identity('billing'))).toBe('200 served')
    expect(await get('/', identity('billing', stranger))).toMatch(/^E/)
    expect(await get('/', identity('late'))).toMatch(/^E/)
    expect(received).toHaveLength(2)
  })

  it('callers with a wrong certificate are refused over HTTP/2 as well', async () => {
    const { port } = await start(mutual({ require: false }))
    const options = { port, host: '127.0.0.1', rejectUnauthorized: false, ALPNProtocols: ['h2'] }
    const socket = connect({ ...options, ...identity('billing', stranger) })
    // a server of HTTP/2 would begin with its settings
    expect(await socket.toArray().catch(() => [])).toEqual([])
  })

  it('callers with certificates are refused once their certificate is revoked, without a restart', async () => {
    authority.revoke('orders')
    const { get } = await start(mutual({ crl: 'ca.crl' }))
    expect(await get('/', identity('billing'))).toBe('200 served')
    expect(await get('/', identity('orders'))).toMatch(/^E/)
    authority.revoke('orders', 'billing')
    await expect.poll(() => get('/', identity('billing')), { timeout: 5000 }).toMatch(/^E/)
  })

  it('callers with certificates are verified for every name that they ask for', async () => {
    const certificates = [
      { cert: 'one.pem', key: 'one.key' },
      { cert: 'shop.pem', key: 'shop.key' },
    ]
    const { get } = await start({ certificates, clients: { ca: 'ca.pem' } })
    expect(await get('/', { servername: 'shop.test', ...identity('billing') })).toBe('200 served')
    expect(await get('/', { servername: 'shop.test', ...identity('billing', stranger) })).toMatch(/^E/)
    expect(await get('/', { servername: 'shop.test' })).toMatch(/^E/)
  })

  const fingerprint = (): string =>
    execFileSync('openssl', ['x509', '-in', path('billing.pem'), '-noout', '-fingerprint', '-sha256'], {
      encoding: 'utf8',
    })
      .split('=')[1]!
      .trim()
      .replaceAll(':', '')
      .toLowerCase()

  it.each([
    ['subject', () => 'O=Test, CN=billing'],
    ['cn', () => 'billing'],
    ['uri', () => 'spiffe://test/billing'],
    ['dns', () => 'billing.test'],
    ['email', () => 'billing@test.test, second@test.test'],
    ['fingerprint', fingerprint],
  ])(
    'callers with certificates are counted by client-certificate:%s, which no header can claim',
    async (part, value) => {
      const by = `client-certificate:${part}`
      const deny = { [by]: [value()] }
      const { get } = await start(mutual({ require: false }), { rules: [{ id: 'all', limit: '1000/s' }], deny })
      expect(await get('/', identity('billing'))).toMatch(/^403/)
      expect(await get('/', identity('orders'))).toBe('200 served')
      const headers = { 'client-cert': value(), 'client-certificate': value(), [by.replace(':', '-')]: value() }
      expect(await get('/', { headers })).toBe('200 served')
    },
  )

  it('callers with certificates cannot write Client-Cert themselves, and services get it only if the settings say so', async () => {
    const headers = { 'Client-Cert': ':Zm9yZ2Vk:', 'client-cert-chain': ':Zm9yZ2Vk:', Client_Cert: 'x' }
    const quiet = await start(mutual({ require: false }))
    await quiet.get('/', { headers, ...identity('billing') })
    expect(Object.keys(received[0]!).filter(name => /client.cert/.test(name))).toEqual([])
    await quiet.close()
    const { get } = await start(mutual({ require: false, forward: true }))
    await get('/', { headers })
    await get('/', { headers, ...identity('billing') })
    expect(Object.keys(received[1]!).filter(name => /client.cert/.test(name))).toEqual([])
    const der = execFileSync('openssl', ['x509', '-in', path('billing.pem'), '-outform', 'der'])
    expect(received[2]!['client-cert']).toBe(`:${der.toString('base64')}:`)
    expect(received[2]).not.toHaveProperty('client-cert-chain')
  })

  it.each([
    [{ ca: 'none.pem' }, 'none.pem cannot be read (ENOENT)'],
    [{ ca: 'one.pem' }, 'one.pem holds CN=one, which is not the certificate of an authority'],
    [{ ca: 'one.key' }, 'one.key is not a certificate in PEM: it holds a private key'],
    [{ crl: 'ca.pem' }, 'ca.pem is not a list of revoked certificates'],
  ])('a gateway does not start with clients: %j', async (clients, message) => {
    await expect(start(mutual(clients))).rejects.toThrow(message)
  })
})
