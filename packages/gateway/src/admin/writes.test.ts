import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, type Limiter } from 'diana-limiter'
import { adminOf } from 'diana-limiter/admin'
import { documentOf } from 'diana-limiter/gateway'
import type { FastifyInstance } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createGateway, gatewaySection } from '../gateway.ts'
import { followFixedSettings } from '../settings/fixed-settings.ts'
import { createAdmin } from './server/create-admin.ts'

const keyText = 'a secret of thirty-two bytes or more, for HS256'
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'diana-writes-'))
  await writeFile(join(folder, 'key'), keyText)
  await writeFile(join(folder, 'other-key'), keyText)
  await writeFile(join(folder, 'filter.mjs'), 'export default async () => {}\n')
  await writeFile(
    join(folder, 'plugin.mjs'),
    `globalThis.loaded = true\nexport const dimensions = [{ name: 'weekday', read: () => 'Monday' }]\n`,
  )
  execFileSync('mkfifo', [join(folder, 'pipe')])
})
afterAll(() => rm(folder, { recursive: true }))

const rules = () => `jwt: { key: 'file:${join(folder, 'key')}' }
gateway:
  listen: { port: 0 }
  limits: { headers: 16KiB }
  routes: [{ to: http://127.0.0.1:9 }]
rules:
  - { id: all, limit: 100/m }
`

let config: string
let limiter: Limiter
let gateway: FastifyInstance | undefined
let admin: FastifyInstance

async function start(text: string, hasWorkers: boolean): Promise<void> {
  await writeFile(config, text)
  limiter = await createLimiter({ config, sections: [gatewaySection] })
  if (hasWorkers) documentOf(limiter).followSection('gateway', followFixedSettings())
  else gateway = await createGateway({ limiter, folder })
  admin = await createAdmin({ limiter, host: '127.0.0.1', page: join(folder, 'no-page') })
}

beforeEach(() => {
  config = join(folder, 'diana.yaml')
})
afterEach(async () => {
  await admin.close()
  await gateway?.close()
  gateway = undefined
  await limiter.close()
})

async function send(method: 'PUT' | 'POST', path: string, payload: object) {
  const { version } = await adminOf(limiter).documents.read('local')
  const reply = await admin.inject({
    method,
    url: `/api/v1${path}`,
    headers: { host: '127.0.0.1' },
    payload: method === 'PUT' ? { version, ...payload } : payload,
  })
  return { status: reply.statusCode, body: reply.json() }
}

const beside = (words: string) => `${words}\n${rules()}`
const inGateway = (words: string) => rules().replace('  listen: { port: 0 }\n', `  listen: { port: 0 }\n  ${words}\n`)

/** Changes that a running process cannot make, or that would have it load code or read another file. */
const refused: readonly (readonly [what: string, text: () => string, word: string])[] = [
  ['plugins', () => beside('plugins: [./plugin.mjs]'), 'plugins'],
  [
    'plugins in JSON',
    () => JSON.stringify({ plugins: ['./plugin.mjs'], rules: [{ id: 'a', limit: '1/s' }] }),
    'plugins',
  ],
  ['a filter that is a module', () => inGateway('filters: [./filter.mjs]'), 'gateway.filters'],
  ['a filter with options', () => inGateway('filters: [{ use: ./filter.mjs, x: 1 }]'), 'gateway.filters'],
  [
    'a filter whose secret is in a file',
    () => inGateway("filters: [{ use: hmac-signature, secrets: { shop: 'file:key' } }]"),
    'gateway.filters',
  ],
  ['TLS', () => inGateway('tls: { cert: cert.pem, key: key.pem }'), 'gateway.tls'],
  ['the admin address', () => inGateway('admin: { host: 127.0.0.1, port: 1 }'), 'gateway.admin'],
  ['the names of the admin API', () => inGateway('admin: { hosts: [evil.example] }'), 'gateway.admin'],
  ['the address of the gateway', () => rules().replace('port: 0', 'port: 1'), 'gateway.listen'],
  ['the size of headers', () => rules().replace('16KiB', '17KiB'), 'gateway.limits.headers'],
  ['the store', () => beside('store: { redis: redis://127.0.0.1 }'), 'store'],
  ['the config center', () => beside('remote: { file: /etc/passwd }'), 'remote'],
  ['the key of tokens in another file', () => rules().replace('/key', '/other-key'), 'jwt.key'],
  [
    'a second file of keys',
    () => rules().replace("{ key: '", `{ key: ['file:${folder}/other-key', '`).replace("key' }", "key'] }"),
    'jwt.key',
  ],
  ['the key of tokens in a pipe', () => rules().replace('/key', '/pipe'), 'jwt.key'],
]

describe.each([
  ['one process', false],
  ['a supervisor of workers', true],
])('a posted document (%s)', (_, hasWorkers) => {
  it.each(refused)(
    'a posted document that changes %s is refused with 422 and a reason, and nothing is written',
    async (_what, make, word) => {
      await start(rules(), hasWorkers)
      for (const [method, path] of [
        ['PUT', '/document'],
        ['POST', '/preview'],
      ] as const) {
        const { status, body } = await send(method, path, { text: make() })
        expect([status, body.detail], path).toEqual([422, expect.stringContaining(word)])
      }
      const checked = await send('POST', '/check', { text: make() })
      expect(checked.body.mistakes[0].message).toContain(word)
      expect(await readFile(config, 'utf8')).toBe(rules())
      expect(limiter.rules.map(({ id }) => id)).toEqual(['all'])
      expect('loaded' in globalThis).toBe(false)
    },
  )

  it('a posted document with allowed changes is written and in force', async () => {
    await start(rules(), hasWorkers)
    const text = rules()
      .replace('100/m', '7/m')
      .replace('127.0.0.1:9', '127.0.0.1:10')
      .replace('jwt:', 'trustProxy: 1\njwt:')
    expect((await send('PUT', '/document', { text })).status).toBe(200)
    expect(await readFile(config, 'utf8')).toBe(text)
    expect([documentOf(limiter).trustProxy, limiter.rules[0]?.limits[0]?.count]).toEqual([1, 7])
  })

  it('a posted document that omits plugins and filters in force is written', async () => {
    const text = `plugins: [./plugin.mjs]\n${inGateway('filters: [./filter.mjs]')}`
    await start(text, hasWorkers)
    expect((await send('PUT', '/document', { text: text.replace('100/m', '8/m') })).status).toBe(200)
    expect((await send('PUT', '/rules/all', { text: 'id: all\nlimit: 9/m' })).status).toBe(200)
    expect((await send('PUT', '/document', { text: rules() })).status).toBe(422)
    Reflect.deleteProperty(globalThis, 'loaded')
  })
})
