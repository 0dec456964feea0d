import { createHmac, generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { randomRuns } from '@test/random-runs'
import { createLimiter } from 'diana-limiter'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { loaderOf } from '../../packages/gateway/src/admin/identity/issuer-keys.ts'
import { algorithms } from '../../packages/limiter/src/algorithms/index.ts'
import { schemaKit } from '../../packages/limiter/src/common/schema-kit.ts'
import { dimensions } from '../../packages/limiter/src/dimensions/index.ts'
import { parseRemote, parseText } from '../../packages/limiter/src/rules/parse-text.ts'
import { sources } from '../../packages/limiter/src/sources/index.ts'
import type { SourceKind } from '../../packages/limiter/src/sources/source.ts'
import { createSource } from '../helpers/sources/create-source.ts'
import { callerValues, hostTemplates, locations, pathTemplates, remoteDocuments, tokenHeads } from './addresses.ts'

// No caller, token, config center or issuer chooses where the process connects: a canary listens at another address and must see
// nothing, and the server that is asked gets each value whole, in its place.

let connections = 0
const canary = createTcpServer(socket => {
  connections++
  socket.destroy()
})
const seen: IncomingMessage[] = []
const plans: Server = createServer((request, response) => {
  seen.push(request)
  response.end('7/h')
})
let redirectTo = ''
const redirects: Server = createServer((_request, response) => response.writeHead(302, { location: redirectTo }).end())
const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
let found: object = {}
const issuer: Server = createServer(({ url }, response) => {
  const keys = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one' }] }
  response.end(JSON.stringify(url === '/keys' ? keys : found))
})
const warnings: string[] = []
const hear = (warning: Error) => void warnings.push(warning.message)
let elsewhere = ''
let here = ''
let redirecting = ''
let discovering = ''
const authorityOf = (server: Server) => `127.0.0.1:${(server.address() as AddressInfo).port}`
beforeAll(async () => {
  process.on('warning', hear)
  await once(canary.listen(0, '127.0.0.2'), 'listening')
  for (const server of [plans, redirects, issuer]) await once(server.listen(0, '127.0.0.1'), 'listening')
  elsewhere = `127.0.0.2:${(canary.address() as AddressInfo).port}`
  here = authorityOf(plans)
  redirecting = authorityOf(redirects)
  discovering = authorityOf(issuer)
})
afterAll(() => {
  process.off('warning', hear)
  for (const server of [plans, redirects, issuer]) {
    server.closeAllConnections()
    server.close()
  }
  canary.close()
  expect(connections).toBe(0)
})

const limitFrom = (from: string) => ({ from, refresh: '1h', default: '5/h' })

describe('a value of a caller in the address of a limit', () => {
  test.each([
    ['/limits/{account}', /^\/limits\/([^/?#]+)$/],
    ['/limits/{account}/of', /^\/limits\/([^/?#]+)\/of$/],
    ['/limits/v.{account}', /^\/limits\/v\.([^/?#]+)$/],
    ['/limits?of={account}&v=1', /^\/limits\?of=([^&#]+)&v=1$/],
  ])('a hostile value in %s stays in its place and reaches no other host', async (template, shape) => {
    const from = `http://${here}${template}`
    const limiter = await createLimiter({ rules: [{ id: 'each', by: 'account', limit: limitFrom(from) }] })
    const values = fc.sample(callerValues(elsewhere), randomRuns(160))
    const ask = (account: string) => limiter.check({ method: 'GET', path: '/', attributes: { account } })
    const sent = new Set<string>()
    for (let first = 0; first < values.length; first += 40) {
      for (const value of values.slice(first, first + 40)) {
        sent.add(value)
        await ask(value)
      }
      // a second marker is sent after the first has come: all others were sent before both
      for (const marker of [`marker-${template}-${first}`, `marker-${template}-${first}-again`]) {
        sent.add(marker)
        await ask(marker)
        await vi.waitFor(() => expect(seen.some(({ url }) => url?.includes(encodeURIComponent(marker)))).toBe(true))
      }
    }
    await limiter.close()
    for (const { url = '', headers, method } of seen.splice(0)) {
      expect([method, headers.host, url]).toEqual(['GET', here, expect.stringMatching(shape)])
      expect(sent).toContain(decodeURIComponent(shape.exec(url)![1]!))
    }
    // the server has answered every time: no value of a caller is trouble of the server
    expect(warnings).toEqual([])
    expect(connections).toBe(0)
  })

  test.each(hostTemplates)('%j is no address of a limit, since a caller would choose the host', async from => {
    const created = createLimiter({ rules: [{ id: 'each', by: 'account', limit: limitFrom(from) }] })
    await expect(created.then(limiter => limiter.close())).rejects.toThrow(/limit\.from/)
  })

  test.each(pathTemplates)('%j is no address of a limit, since a caller could leave the path', async from => {
    const created = createLimiter({ rules: [{ id: 'each', by: 'account', limit: limitFrom(from) }] })
    await expect(created.then(limiter => limiter.close())).rejects.toThrow(/limit\.from/)
  })
})

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test('a token that names its own key, or a place of keys, is no token and leads nowhere', async () => {
  const secret = 'a-secret-of-at-least-32-characters!'
  const limiter = await createLimiter({
    jwt: { key: secret },
    rules: [{ id: 'each', by: 'jwt:sub', missing: 'skip', limit: '1/h' }],
  })
  const signed = (head: object, key: string) => {
    const text = `${part(head)}.${part({ sub: 'ann' })}`
    return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
  }
  const check = (token: string) =>
    limiter.check({ method: 'GET', path: '/', headers: { authorization: `Bearer ${token}` } })
  const heads = tokenHeads(elsewhere)
  for (const head of heads) {
    for (const key of ['', '\u0000', 'null']) expect((await check(signed(head, key))).decisions).toEqual([])
    expect((await check(`${part(head)}.${part({ sub: 'ann' })}.`)).decisions).toEqual([])
  }
  expect((await check(signed({ alg: 'HS256' }, secret))).allowed).toBe(true)
  expect((await check(signed({ alg: 'HS256' }, secret))).allowed).toBe(false)
  expect(heads.length).toBeGreaterThan(130)
  await limiter.close()
})

describe('a config center', () => {
  test('documents of a config center cannot name a place, a file, a module or another section', () => {
    const vocabulary = { algorithms, dimensions, sources }
    const own = parseText('rules: [{ id: local, limit: 100/h }]', 'local', vocabulary).document!
    const documents = remoteDocuments(elsewhere)
    for (const document of documents) {
      const text = JSON.stringify(document)
      expect([text, parseRemote(text, 'remote', vocabulary, own).document]).toEqual([text, undefined])
    }
    expect(documents.length).toBeGreaterThan(30)
  })

  const named = { key: 'rules', dataId: 'rules', group: 'g', appId: 'a', interval: '100ms' }
  const shapeOf = ({ options }: SourceKind): object =>
    typeof options === 'function' ? options(schemaKit) : (options ?? {})
  const wordsOf = (kind: SourceKind) =>
    Object.fromEntries(Object.entries(named).filter(([word]) => word in shapeOf(kind)))
  const kinds = sources.filter(({ name }) => !['file', 'redis'].includes(name))
  test.each(kinds.map(kind => [kind.name, kind] as const))(
    'a redirect of %s leads to no other host',
    async (_, kind) => {
      for (const location of locations(elsewhere)) {
        redirectTo = location
        const controller = new AbortController()
        const source = createSource(kind, `http://${redirecting}`, wordsOf(kind))
        const first = source.watch(controller.signal)[Symbol.asyncIterator]().next()
        await expect(first).rejects.toThrow()
        controller.abort()
      }
      expect(connections).toBe(0)
    },
  )
})

describe('an issuer', () => {
  const settings = { audience: ['diana'], userClaim: 'email' }
  const load = (more: object) => loaderOf({ ...settings, ...more }, '/', new AbortController().signal)()

  test('a redirect of an issuer or of its keys leads nowhere', async () => {
    for (const location of locations(elsewhere)) {
      redirectTo = location
      await expect(load({ issuer: `http://${redirecting}` })).rejects.toThrow('HTTP 302')
      await expect(load({ jwks: `http://${redirecting}/keys` })).rejects.toThrow('HTTP 302')
    }
    expect(connections).toBe(0)
  })

  test('an issuer cannot name a place of its keys on this machine, unless it is that place itself', async () => {
    const url = `http://${discovering}`
    const places = [`http://${elsewhere}/keys`, 'file:///etc/passwd', 'data:,{}', `//${elsewhere}/keys`, '/etc/passwd']
    const others = [`http://127.0.0.1:${elsewhere.split(':')[1]}/`, `http://localhost:${elsewhere.split(':')[1]}/`]
    const spelled = [`http://127.0.0.1@${elsewhere}/`, `http:${elsewhere}/`, `HTTP:\\\\${elsewhere}\\keys`, 7, null, {}]
    for (const place of [...places, ...others, ...spelled]) {
      found = { issuer: url, jwks_uri: place }
      await expect(load({ issuer: url }), String(place)).rejects.toThrow(/keys|its keys are/)
    }
    found = { issuer: url, jwks_uri: `${url}/keys` }
    await expect(load({ issuer: url })).resolves.toBeDefined()
    expect(connections).toBe(0)
  })

  test('an answer that is too long ends the reading', async () => {
    found = { issuer: `http://${discovering}`, long: 'x'.repeat(300_000) }
    await expect(load({ issuer: `http://${discovering}` })).rejects.toThrow('more than')
  })
})
