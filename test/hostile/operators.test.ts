import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { randomRuns } from '@test/random-runs'
import { createLimiter, type Limiter } from 'diana-limiter'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Audit } from '../../packages/gateway/src/admin/audit.ts'
import { operations } from '../../packages/gateway/src/admin/operations/index.ts'
import { createAdmin } from '../../packages/gateway/src/admin/server/create-admin.ts'
import { MemoryOverrides } from '../../packages/limiter/src/limits/overrides.ts'
import { oddTexts, spellingsOf } from './operators.ts'

// What operators, viewers and their proxies send to the admin API: no one acts under another name, a viewer changes nothing, and no
// text is shown that could be taken for something else.

const token = 'the-token-of-operators'
const viewToken = 'the-token-of-viewers!'
const folder = mkdtempSync(join(tmpdir(), 'diana-operators-'))
const config = join(folder, 'diana.yaml')
const text = `rules:
  - { id: each, by: account, limit: { default: 5/h, overrides: true }, block: manual }
  - { id: other, by: account, limit: 5/h, block: manual }
  - { id: paid, by: account, limit: 5/h, credit: true }
`
let limiter: Limiter
let app: FastifyInstance
beforeAll(async () => {
  writeFileSync(config, text)
  limiter = await createLimiter({ config })
  const identity = {
    trustedProxies: ['10.0.0.1'],
    headers: { user: 'x-user', groups: 'x-groups' },
    roles: { operator: ['group:sre'], viewer: ['group:staff'] },
  }
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere', token, viewToken, identity })
})
afterAll(async () => {
  await app.close()
  await limiter.close()
  rmSync(folder, { recursive: true })
})

type As = Readonly<Record<string, string>>
const viewer: As = { authorization: `Bearer ${viewToken}` }
const operator: As = { authorization: `Bearer ${token}` }
const eve: As = { 'x-user': 'eve', 'x-groups': 'sre', 'x-diana-request': '1' }
const staff: As = { 'x-user': 'sam', 'x-groups': 'staff', 'x-diana-request': '1' }

async function send(as: As, method: string, url: string, payload?: object, headers: As = {}) {
  const remoteAddress = 'x-user' in as ? '10.0.0.1' : '127.0.0.1'
  const request = { method: method as 'GET', url, remoteAddress, headers: { host: '127.0.0.1', ...as, ...headers } }
  const reply = await app.inject({ ...request, ...(payload && { payload }) })
  return { status: reply.statusCode, text: reply.body, body: parse(reply.body) }
}
const parse = (json: string) => {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}
const ask = (as: As, method: string, path: string, payload?: object) => send(as, method, `/api/v1${path}`, payload)

/** Everything that can be changed. */
async function everything(): Promise<unknown> {
  const [blocks, overrides, trials, drafts] = await Promise.all(
    ['/blocks', '/overrides', '/trials', '/draft'].map(path => ask(operator, 'GET', path)),
  )
  const { changes } = (await ask(operator, 'GET', '/audit?top=1000')).body
  return [readFileSync(config, 'utf8'), blocks!.body, overrides!.body, trials!.text, drafts!.text, changes.length]
}

const bodies: Readonly<Record<string, object>> = {
  '/blocks': { rule: 'each', key: 'ann', for: '1m' },
  '/reset': { rule: 'each', key: 'ann' },
  '/overrides': { rule: 'each', key: 'ann', limit: '9/h' },
  '/credits': { rule: 'paid', key: 'ann', permits: 5 },
  '/document': { text: 'rules: [{ id: each, limit: 9/h }]', version: 'x' },
  '/rules/{id}': { text: 'id: each\nlimit: 9/h', version: 'x' },
  '/trials': { rule: 'each', text: 'id: each\nby: account\nlimit: 2/h' },
}

test('a viewer changes nothing by any spelling of an operation, nor does a stranger who names a user', async () => {
  await ask(operator, 'POST', '/blocks', bodies['/blocks'])
  const [{ id }] = (await ask(operator, 'GET', '/blocks')).body.blocks
  const before = await everything()
  const stranger = eve
  let tried = 0
  for (const { method, path } of operations.filter(one => one.method !== 'GET')) {
    const url = `/api/v1${path.replace('{id}', path.startsWith('/blocks') ? id : 'each')}`
    for (const spelled of spellingsOf(method, url)) {
      for (const as of [viewer, staff]) {
        await send(
          as,
          spelled.method,
          spelled.url,
          spelled.method === 'GET' ? undefined : (bodies[path] ?? {}),
          spelled.headers,
        )
        tried++
      }
    }
    // the headers of a user come from an address that is not the proxy
    const headers = { host: '127.0.0.1', ...stranger }
    const reply = await app.inject({ method, url, remoteAddress: '10.0.0.2', headers, payload: bodies[path] ?? {} })
    expect([path, reply.statusCode]).toEqual([path, 401])
  }
  expect(await everything()).toEqual(before)
  expect(tried).toBeGreaterThan(500)
})

test('an operator who is known by name sets an override under no other name', async () => {
  const reply = await ask(eve, 'POST', '/overrides', { ...bodies['/overrides'], setBy: 'bob' })
  expect([reply.status, reply.body.setBy]).toEqual([200, 'eve'])
  const { overrides } = (await ask(eve, 'GET', '/overrides')).body
  expect(overrides.map(({ setBy }: { setBy: string }) => setBy)).toEqual(['eve'])
})

/** What ends a line, moves a cursor or changes the direction of text. */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u

test('no odd text of an operator or a viewer is shown as it came', async () => {
  const property = fc.asyncProperty(oddTexts, async odd => {
    const path = encodeURIComponent(odd.toWellFormed())
    await ask(viewer, 'DELETE', `/blocks/${path}`)
    await ask(operator, 'DELETE', `/overrides/${path}`)
    await ask(operator, 'POST', '/overrides', {
      rule: 'each',
      key: 'ann',
      limit: '9/h',
      setBy: odd.slice(0, 128),
      reason: odd,
    })
    const blocked = await ask(operator, 'POST', '/blocks', { rule: 'each', key: odd, for: '1m' })
    await ask(operator, 'POST', '/reset', { rule: 'other', key: odd })
    for (const [name, value] of [
      ['x-user', odd],
      ['x-groups', `sre,${odd}`],
    ] as const) {
      const as = {
        'x-user': 'zoe',
        'x-groups': 'sre',
        'x-diana-request': '1',
        [name]: Buffer.from(odd && value).toString('latin1'),
      }
      await send(as, 'POST', '/api/v1/reset', { rule: 'other', key: 'ann' }).catch(() => {}) // Node refuses some
    }
    if (blocked.status === 200) {
      // a block of one rule is not one of another, and its id ends it
      const list = (await ask(operator, 'GET', '/blocks?unmask=true')).body.blocks as { id: string; rule: string }[]
      expect(list.filter(({ rule }) => rule !== 'each')).toEqual([])
      expect((await ask(operator, 'DELETE', `/blocks/${blocked.body.id}`)).status).toBe(200)
    }
    const { changes, refused } = (await ask(operator, 'GET', '/audit?top=1000')).body
    const { overrides } = (await ask(operator, 'GET', '/overrides')).body
    for (const entry of [...changes, ...refused, ...overrides]) {
      const { key: _, ...shown } = entry as Record<string, unknown>
      for (const value of Object.values(shown)) if (typeof value === 'string') expect(value).not.toMatch(unseen)
    }
  })
  await fc.assert(property, { numRuns: randomRuns(60) })
})

test('every answer of the API is JSON that no browser takes for a page', async () => {
  for (const { method, path } of operations) {
    const url = `/api/v1${path.replace('{id}', encodeURIComponent('<script>alert(1)</script>'))}?x=<script>`
    const reply = await app.inject({
      method,
      url,
      remoteAddress: '127.0.0.1',
      headers: { host: '127.0.0.1', ...operator },
    })
    expect([path, reply.headers['content-type']]).toEqual([path, expect.stringMatching(/json/)])
    expect(reply.headers['x-content-type-options']).toBe('nosniff')
    expect(reply.headers['content-security-policy']).toContain("default-src 'none'")
  }
})

test('made-up ids of blocks and overrides end nothing', async () => {
  await ask(operator, 'POST', '/blocks', { rule: 'each', key: 'ann', for: '1m' })
  await ask(operator, 'POST', '/blocks', { rule: 'other', key: 'bob', for: '1m' })
  const { blocks } = (await ask(operator, 'GET', '/blocks')).body as { blocks: { id: string }[] }
  const [first, second] = blocks.map(({ id }) => id)
  const forged = [
    first!.slice(0, -1),
    `${first}0`,
    first!.toUpperCase(),
    `${first}${second}`,
    '',
    '*',
    'each',
    '__proto__',
    '%2a',
  ]
  for (const id of forged.filter(id => id !== first)) {
    for (const kind of ['blocks', 'overrides'])
      expect((await ask(operator, 'DELETE', `/${kind}/${id}`)).status).not.toBe(200)
  }
  expect((await ask(operator, 'GET', '/blocks')).body.blocks.map(({ id }: { id: string }) => id)).toEqual([
    first,
    second,
  ])
})

test('of operators who write at once, one succeeds and the others get 409 with what is there now', async () => {
  for (let round = 0; round < randomRuns(6); round++) {
    const { version, text: before } = (await ask(operator, 'GET', '/document')).body
    const texts = [1, 2, 3, 4].map(n => before.replace(/#.*\n|$/, '').concat(`# ${round} ${n}\n`))
    const replies = await Promise.all(
      texts.map((one, n) => ask(n % 2 ? eve : operator, 'PUT', '/document', { text: one, version, comment: `${n}` })),
    )
    const statuses = replies.map(({ status }) => status).sort()
    expect(statuses).toEqual([200, 409, 409, 409])
    const winner = replies.findIndex(({ status }) => status === 200)
    expect(readFileSync(config, 'utf8')).toBe(texts[winner])
  }
})

test('a flood of refusals of one client removes no refusal of another client, and hides no later one', () => {
  const audit = new Audit()
  const entry = { operation: 'postBlocks', subject: 'each', via: 'none', role: 'none' } as const
  audit.add({ ...entry, at: 0, from: '10.0.0.9', who: 'bob', refused: 'no role' })
  for (let minute = 0; minute < 60; minute++) {
    for (let n = 0; n < 500; n++) {
      audit.add({
        ...entry,
        operation: `op-${n}`,
        at: minute * 60_000 + n,
        from: '10.0.0.66',
        who: 'eve',
        refused: 'read only',
      })
    }
  }
  const late = { ...entry, at: 59 * 60_000 + 501, from: '10.0.0.7', who: 'zoe', refused: 'no role' }
  audit.add(late)
  const kept = audit.readRefused(1000).map(({ who }) => who)
  expect([kept.includes('bob'), kept[0]]).toEqual([true, 'zoe'])
  expect(kept.length).toBeLessThanOrEqual(200)
})

test('overrides that have ended hide none that are in force', async () => {
  const store = new MemoryOverrides()
  for (let n = 0; n < 1500; n++) await store.set({ rule: 'each', key: `past-${n}`, limit: '9/h', setAt: 0, until: 10 })
  await store.set({ rule: 'each', key: 'ann', limit: '9/h', setAt: 0 })
  expect((await store.list(1000, 11)).map(({ key }) => key)).toEqual(['ann'])
})
