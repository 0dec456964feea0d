import { randomRuns } from '@test/random-runs'
import { algorithms, dimensions, sources } from 'diana-limiter'
import { parseText } from 'diana-limiter/schema'
import fc from 'fast-check'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { gatewaySection } from '../../../packages/gateway/src/gateway.ts'
import { GatewayRig, sendRaw } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

async function guard(...routes: object[]) {
  return await rig.guard({ gateway: { routes } })
}

async function call(url: string, method: 'GET' | 'HEAD' | 'POST' = 'GET', body?: string) {
  const { statusCode, headers, body: answer } = await request(url, { method, ...(body !== undefined && { body }) })
  return { status: statusCode, headers, text: await answer.text() }
}

describe('an answer of the gateway itself', () => {
  test('an answer of the gateway itself has the status, the text and the headers of its route', async () => {
    const headers = { 'content-type': 'application/json', 'x-from': 'gateway' }
    const { url } = await guard({ path: '/status', answer: { status: 418, body: '{"tea":true}', headers } })
    const answer = await call(`${url}/status/below?x=1`)
    expect([answer.status, answer.text]).toEqual([418, '{"tea":true}'])
    expect(answer.headers).toMatchObject({ ...headers, 'content-length': '12' })
    const head = await call(`${url}/status`, 'HEAD')
    expect([head.status, head.text, head.headers['content-length']]).toEqual([418, '', '12'])
  })

  test('an answer of the gateway itself is plain text, or empty, unless its route says more', async () => {
    const { url } = await guard({ path: '/a', answer: { body: 'grüße' } }, { path: '/b', answer: { status: 204 } })
    const text = await call(`${url}/a`)
    expect([text.status, text.text, text.headers['content-type']]).toEqual([200, 'grüße', 'text/plain; charset=utf-8'])
    const empty = await call(`${url}/b`, 'POST', 'body')
    expect([empty.status, empty.text, empty.headers['content-type']]).toEqual([204, '', undefined])
  })

  test('an answer of the gateway itself is counted like any other', async () => {
    const rules = [{ id: 'one', limit: '1/h' }]
    const { url } = await rig.guard({ rules, gateway: { routes: [{ answer: { body: 'ok' } }] } })
    expect([(await call(url)).status, (await call(url)).status]).toEqual([200, 503])
  })

  test('an answer of the gateway itself is also sent to a WebSocket request', async () => {
    const { port } = await guard({ answer: { status: 404, body: 'none here' } })
    const offer = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13'
    expect(await sendRaw(port, `GET / HTTP/1.1\r\nHost: a\r\n${offer}\r\n\r\n`)).toMatch(/ 404 .*none here$/s)
  })
})

describe('a redirect', () => {
  test.each([
    ['/old/a/b?x=1', { to: '/new' }, '/new/a/b?x=1'],
    ['/old', { to: '/new' }, '/new'],
    ['/old/', { to: '/new' }, '/new'],
    ['/old/a', { to: '/' }, '/a'],
    ['/old', { to: '/' }, '/'],
    ['/old?x', { to: 'https://new.test' }, 'https://new.test?x'],
    ['/old/a?x', { to: 'https://new.test/base/' }, 'https://new.test/base/a?x'],
    ['/old;v=1/a', { to: '/new' }, undefined],
    ['/old/a?x=1', { to: '/new', keepPath: false }, '/new?x=1'],
    ['/old/a?x=1', { to: '/new', keepQuery: false }, '/new/a'],
    ['/old/a?x=1', { to: 'https://new.test/there', keepPath: false, keepQuery: false }, 'https://new.test/there'],
  ])('a redirect of %s by %j leads to %s', async (target, redirect, location) => {
    const { url } = await guard({ path: '/old', redirect })
    const answer = await call(`${url}${target}`)
    expect([answer.status, answer.headers.location, answer.text.slice(0, 1)]).toEqual(
      location === undefined ? [400, undefined, '{'] : [307, location, ''],
    )
  })

  test('a redirect has the status of its route', async () => {
    const { url } = await guard({ redirect: { to: 'https://new.test', status: 308 } })
    expect((await call(`${url}/a`)).status).toBe(308)
  })

  test('a redirect never leads to a host of the caller’s choice, however the target is spelled', async () => {
    const { port } = await guard({ path: '/to', redirect: { to: 'https://new.test/base' } }, { redirect: { to: '/' } })
    const piece = fc.constantFrom(
      '/',
      '//',
      '\\',
      '/\\',
      '%2F',
      '%5C',
      '%2f%2f',
      '@',
      ':',
      'evil.test',
      '.',
      '..',
      ';',
      '?',
      '#',
      'to',
    )
    const target = fc.array(piece, { maxLength: 7 }).map(pieces => `/${pieces.join('')}`)
    await fc.assert(
      fc.asyncProperty(target, async text => {
        const answer = await sendRaw(port, `GET ${text} HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n`)
        const location = /^location: (.*)$/im.exec(answer)?.[1]?.trim()
        if (location === undefined) return
        // as a browser reads it
        expect(['shop.test', 'new.test']).toContain(new URL(location, 'http://shop.test/').hostname)
      }),
      { numRuns: randomRuns(50) },
    )
  })
})

describe('a body limit of a route', () => {
  test('the body limit of a route replaces the general one, larger or smaller, with or without a declared length', async () => {
    const { url: to } = await rig.serve((incoming, response) => {
      incoming.resume().on('end', () => response.end('served'))
    })
    const routes = [
      { path: '/small', to, limits: { body: '4B' } },
      { path: '/large', to, limits: { body: '64B' } },
      { path: '/own', answer: { body: 'ok' }, limits: { body: '4B' } },
      { to },
    ]
    const { url, port } = await rig.guard({ gateway: { limits: { body: '16B' }, routes } })
    const statuses = async (path: string, size: number): Promise<number[]> => {
      const body = 'x'.repeat(size)
      const chunked = `${size.toString(16)}\r\n${body}\r\n0\r\n\r\n`
      const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`
      const raw = await sendRaw(port, head + chunked)
      return [(await call(`${url}${path}`, 'POST', body)).status, Number(/^HTTP\/1\.1 (\d+)/.exec(raw)?.[1])]
    }
    expect(await statuses('/small', 4)).toEqual([200, 200])
    expect(await statuses('/small', 5)).toEqual([413, 413])
    expect(await statuses('/large', 64)).toEqual([200, 200])
    expect(await statuses('/large', 65)).toEqual([413, 413])
    expect(await statuses('/', 16)).toEqual([200, 200])
    expect(await statuses('/', 17)).toEqual([413, 413])
    expect((await call(`${url}/own`, 'POST', 'xxxxx')).status).toBe(413)
  })
})

describe('a file is refused', () => {
  const mistakesIn = (routes: string): string[] => {
    const text = `rules: [{ id: a, limit: 1/s }]\ngateway:\n  routes:\n${routes}`
    const { mistakes } = parseText(text, 'd.yaml', { algorithms, dimensions, sources, sections: [gatewaySection] })
    return mistakes.map(({ line, message }) => `${line}: ${message}`)
  }

  test.each([
    ['    - { path: /a }', /^4: .*leads nowhere: add to, answer or redirect/],
    ['    - { to: "http://a", answer: {} }', /^4: .*has more than one of to, answer and redirect/],
    ['    - { redirect: { to: //evil.test } }', /must be a plain path/],
    ['    - { redirect: { to: "/\\\\evil.test" } }', /must be a plain path/],
    ['    - { redirect: { to: "javascript:alert(1)" } }', /must be a path such as \/new, or an address/],
    ['    - { redirect: { to: "https://u:p@a.test" } }', /must be without a name and password/],
    ['    - { redirect: { to: "https://a.test?x" } }', /must end with its path/],
    ['    - { redirect: { to: "https:\\\\\\\\a.test" } }', /must be a path such as \/new, or an address/],
    ['    - { redirect: { to: /a, status: 200 } }', /must be 301, 302, 303, 307 or 308/],
    ['    - { answer: { status: 204, body: x } }', /has no place in an answer 204/],
    ['    - { answer: { status: 101 } }', /status/],
    ['    - { answer: { headers: { content-length: "3" } } }', /belongs to the connection/],
    ['    - { methods: [GET], to: "http://a" }', /did you mean method/],
    ['    - { method: GETT, to: "http://a" }', /did you mean GET/],
  ])('a file is refused if a route is %s', (routes, message) => {
    expect(mistakesIn(routes).join('\n')).toMatch(message)
  })

  test.each([
    ['{ path: /a, to: "http://a" }', '{ path: /a/, to: "http://b" }'],
    ['{ host: A.test, to: "http://a" }', '{ host: [b.test, a.TEST], to: "http://b" }'],
    ['{ method: [GET, PUT], to: "http://a" }', '{ method: [put, get], answer: {} }'],
    ['{ header: { X-A: "1", x-b: "2" }, to: "http://a" }', '{ header: { x-B: "2", x-a: "1" }, to: "http://b" }'],
    ['{ path: /%61, to: "http://a" }', '{ path: /a, to: "http://b" }'],
  ])('a file is refused if two routes are alike, with the lines and the paths of both: %s and %s', (one, other) => {
    const pathOf = (route: string): string => /path: ([^,]*?)\/?,/.exec(route)?.[1] ?? '/'
    const mistakes = mistakesIn(`    - ${one}\n    - { path: /between, to: "http://c" }\n    - ${other}`)
    expect(mistakes).toEqual([
      expect.stringMatching(new RegExp(`^4: .* the path ${pathOf(one)} of .*as routes\\[2\\] does: leave one out`)),
      expect.stringMatching(new RegExp(`^6: .* the path ${pathOf(other)} of .*as routes\\[0\\] does: leave one out`)),
    ])
  })
})
