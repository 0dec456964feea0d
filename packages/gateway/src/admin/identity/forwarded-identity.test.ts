import { type AddressInfo, connect } from 'node:net'
import { randomRuns } from '@test/random-runs'
import { createLimiter, type Limiter } from 'diana-limiter'
import fc from 'fast-check'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAdmin } from '../server/create-admin.ts'

const token = 'correct-horse-battery-staple'
const proxy = '127.0.0.7'
const identity = {
  trustedProxies: [proxy, '127.0.7.0/24'],
  headers: { user: 'x-user', groups: 'x-groups' },
  roles: { operator: ['group:sre', 'user:ann@example.com'], viewer: ['group:staff'] },
  logoutUrl: '/oauth2/sign_out',
}
let limiter: Limiter
let app: FastifyInstance
let port: number
beforeAll(async () => {
  limiter = await createLimiter({ rules: [{ id: 'each', by: 'account', limit: '5/h', block: 'manual' }] })
  app = await createAdmin({ limiter, host: '127.0.0.1', page: '/nowhere', token, identity })
  await app.listen({ host: '::', port: 0 })
  port = (app.server.address() as AddressInfo).port
})
afterAll(async () => {
  await app.close()
  await limiter.close()
})

interface Sent {
  readonly from?: string
  readonly method?: string
  readonly path?: string
  readonly body?: object
}

/** Sends lines as they are; the peer is an IPv4-mapped address, since the server listens on both kinds. */
function send(lines: readonly string[], { from = proxy, method = 'GET', path = '/session', body }: Sent = {}) {
  const text = body === undefined ? '' : JSON.stringify(body)
  const more = body === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${text.length}`]
  const head = [`${method} /api/v1${path} HTTP/1.1`, 'Host: 127.0.0.1', ...lines, ...more, 'Connection: close']
  return new Promise<{ status: number; body: Record<string, string> }>((resolve, reject) => {
    let received = ''
    const socket = connect({ port, host: '127.0.0.1', localAddress: from }, () =>
      socket.write(Buffer.from(`${head.join('\r\n')}\r\n\r\n${text}`, 'latin1')),
    )
    socket.setEncoding('utf8').on('data', piece => {
      received += piece
    })
    socket.on('error', reject).on('close', () => {
      const [headers = '', rest = ''] = received.split('\r\n\r\n')
      const parsed = rest.startsWith('{') ? JSON.parse(rest) : {}
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(headers)?.[1] ?? 0), body: parsed })
    })
  })
}

describe('a user that a trusted proxy names', () => {
  it.each([
    [['X-User: ann@example.com'], 'operator', 'ann@example.com'],
    [['x-USER: ann@example.com', 'X-GROUPS:'], 'operator', 'ann@example.com'],
    [['X-User: bob', 'X-Groups: sre'], 'operator', 'bob'],
    [['X-User: bob', 'X-Groups: other , sre,staff'], 'operator', 'bob'],
    [['X-User: \t bob \t', 'X-Groups: staff'], 'viewer', 'bob'],
    [['X-User: bob', 'X-Groups: staff', 'Authorization: Bearer aaa.bbb.ccc'], 'viewer', 'bob'],
    [['X-User: bob', 'X-Groups: staff', 'Authorization: Basic eDp5'], 'viewer', 'bob'],
  ])('%j is recognized', async (lines, role, user) => {
    expect(await send(lines)).toEqual({
      status: 200,
      body: { role, user, via: 'proxy', logoutUrl: identity.logoutUrl },
    })
    expect((await send(lines, { from: '127.0.7.200' })).body.user).toBe(user)
  })

  it('the admin token is used if both are given, and works without the proxy', async () => {
    const lines = ['X-User: bob', 'X-Groups: staff', `Authorization: Bearer ${token}`]
    expect((await send(lines)).body).toEqual({ role: 'operator', via: 'token' })
    expect((await send(lines.slice(2), { from: '127.0.0.1' })).body).toEqual({ role: 'operator', via: 'token' })
  })

  it.each(['127.0.0.1', '127.0.0.8', '127.0.8.1'])(
    'headers from %s, which is not trusted, mean nothing',
    async from => {
      const lines = [
        'X-User: ann@example.com',
        'X-Groups: sre',
        'X-Forwarded-For: 127.0.0.7',
        'Forwarded: for=127.0.0.7',
      ]
      expect((await send(lines, { from })).status).toBe(401)
      expect((await send([...lines, 'X-User: twice', 'X-Groups: '], { from })).status).toBe(401)
      expect((await send([...lines, `Authorization: Bearer ${token}`], { from })).body.via).toBe('token')
    },
  )

  it.each([
    ['twice', ['X-User: ann@example.com', 'X-User: eve']],
    ['twice in another spelling', ['X-User: eve', 'x-uSER: ann@example.com']],
    ['empty', ['X-User:']],
    ['of spaces', ['X-User:   ']],
    ['not ASCII', ['X-User: \xc3\xa4nn']],
    ['too long', [`X-User: ${'a'.repeat(257)}`]],
    ['with a tab', ['X-User: ann\tsre']],
    ['with groups that come twice', ['X-User: eve', 'X-Groups: staff', 'X-Groups: sre']],
    ['with groups that are not ASCII', ['X-User: eve', 'X-Groups: sre\xff']],
    ['with groups that are too long', ['X-User: eve', `X-Groups: ${'g,'.repeat(4100)}`]],
  ])('a user header that is %s is refused, and the answer says what to do', async (_, lines) => {
    const { status, body } = await send(lines)
    expect(status).toBe(400)
    expect(body.detail).toMatch(/^The header x-(user|groups) (came more than once|is empty|has )/)
  })

  it.each([
    ['folded', ['X-User: eve', ' ann@example.com']],
    ['with a NUL', ['X-User: ann@example.com\0']],
    ['with a space before the colon', ['X-User : ann@example.com']],
  ])('a header that is %s never names another user', async (_, lines) => {
    const { status, body } = await send(lines)
    expect([0, 400, 401, 403]).toContain(status)
    expect(body.role).toBeUndefined()
  })

  it('a header that only looks like the one of the settings is another header', async () => {
    for (const line of ['X_User: ann@example.com', 'X-Forwarded-User: ann@example.com', 'X-User-: ann@example.com']) {
      expect((await send([line])).status).toBe(401)
    }
  })

  it('a user without a role is refused: the answer names their groups and those that have a role', async () => {
    const { status, body } = await send(['X-User: eve', 'X-Groups: sales, SRE'])
    expect(status).toBe(403)
    expect(body.detail).toBe(
      'You are signed in as eve, in the groups sales, SRE, which has no role here: gateway.admin.identity.roles lists group:sre, user:ann@example.com, group:staff.',
    )
    // a user who is named like a group is not in it
    for (const user of ['sre', 'group:sre', 'user:ann@example.com', '*', 'ANN@example.com']) {
      expect((await send([`X-User: ${user}`])).status, user).toBe(403)
    }
    const { body: audit } = await send(['X-User: ann@example.com'], { path: '/audit' })
    expect(audit.refused).toContainEqual(
      expect.objectContaining({ who: 'eve', operation: 'signIn', refused: 'no role', from: proxy, role: 'none' }),
    )
  })
})

describe('a change by a user that a proxy names', () => {
  const change = { method: 'POST', path: '/blocks', body: { rule: 'each', key: 'x', for: '1s' } }
  const user = 'X-User: ann@example.com'

  it('a change needs proof that a page of this origin asks', async () => {
    expect((await send([user], change)).status).toBe(403)
    expect((await send([user, 'Sec-Fetch-Site: none'], change)).status).toBe(403)
    expect((await send([user, 'Sec-Fetch-Site: same-site'], change)).status).toBe(403)
    expect((await send([user, 'Origin: https://evil.example', 'Sec-Fetch-Site: same-origin'], change)).status).toBe(403)
    expect((await send([user, 'Origin: null', 'X-Diana-Request: 1'], change)).status).toBe(403)
    expect((await send([user, 'Sec-Fetch-Site: cross-site', 'X-Diana-Request: 1'], change)).status).toBe(403)
    expect((await send([user, 'Sec-Fetch-Site: same-origin'], change)).status).toBe(200)
    expect((await send([user, 'Origin: https://127.0.0.1'], change)).status).toBe(200)
    expect((await send([user, 'X-Diana-Request: 1'], change)).status).toBe(200)
    // a token is sent on purpose
    expect((await send([user, `Authorization: Bearer ${token}`], change)).status).toBe(200)
    const form = ['Content-Type: text/plain', 'Content-Length: 2', 'Origin: https://127.0.0.1']
    expect((await send([user, ...form], { method: 'POST', path: '/blocks' })).status).toBe(415)
  })

  it('a change is recorded with the name of the user and the address that the proxy names', async () => {
    await send([user, 'X-Diana-Request: 1', 'X-Forwarded-For: 203.0.113.66, 198.51.100.7'], change)
    const { body } = await send([user], { path: '/audit?top=1' })
    expect(body.changes).toEqual([
      expect.objectContaining({ who: 'ann@example.com', via: 'proxy', role: 'operator', from: '198.51.100.7' }),
    ])
  })

  it('the preflight of a page of another origin is refused', async () => {
    const asks = ['Access-Control-Request-Method: POST', 'Access-Control-Request-Headers: x-diana-request']
    const { status } = await send([user, 'Origin: https://evil.example', ...asks], {
      method: 'OPTIONS',
      path: '/blocks',
    })
    expect(status).toBe(403)
  })
})

describe('wrong tokens behind a trusted proxy', () => {
  it('one client who guesses locks out no other client of the proxy', async () => {
    const guess = (client: string, word: string) =>
      send([`X-Forwarded-For: 203.0.113.99, ${client}`, `Authorization: Bearer ${word}`])
    const statuses: number[] = []
    for (let i = 0; i < 14; i++) statuses.push((await guess('198.51.100.1', `guess-number-${i}`)).status)
    expect(statuses.slice(-2)).toEqual([429, 429])
    expect((await guess('198.51.100.1', token)).status).toBe(429)
    expect((await guess('198.51.100.2', token)).status).toBe(200)
    const { body } = await send(['X-User: ann@example.com'], { path: '/audit' })
    const found = (body.refused as unknown as { refused: string; from: string }[]).filter(
      ({ refused }) => refused === 'wrong tokens',
    )
    expect(found).toEqual([expect.objectContaining({ from: '198.51.100.1', who: 'wrong token' })])
  })
})

describe('who may do what', () => {
  const peers = fc.constantFrom(proxy, '127.0.0.1', '127.0.7.9')
  const users = fc.array(fc.constantFrom('ann@example.com', 'bob', 'eve', '', ' ', 'sre', 'b\xe9'), { maxLength: 2 })
  const groups = fc.array(fc.constantFrom('sre', 'staff', 'x,sre', 'SRE', '', 'x, staff ,y', 'sre\xe9'), {
    maxLength: 2,
  })
  const auth = fc.constantFrom(undefined, `Bearer ${token}`, 'Bearer aaa.bbb.ccc', 'Basic eDp5')
  const proofs = fc.constantFrom(undefined, 'X-Diana-Request: 1', 'Sec-Fetch-Site: same-origin', 'Sec-Fetch-Site: none')
  const spelled = (name: string) => fc.constantFrom(name, name.toUpperCase(), name.toLowerCase())

  /** What the documentation says, in a few lines. */
  function expected(
    from: string,
    names: string[],
    lists: string[],
    auth: string | undefined,
    proof: string | undefined,
  ) {
    if (auth === `Bearer ${token}`) return [200, 200]
    if (from === '127.0.0.1' || names.length === 0) return [401, 401]
    const texts = [...names, ...lists]
    const isBad =
      names.length > 1 || names[0]!.trim() === '' || lists.length > 1 || texts.some(text => text.includes('\xe9'))
    if (isBad) return [400, 400]
    const found = lists.flatMap(list => list.split(',').map(one => one.trim()))
    const isOperator = names[0] === 'ann@example.com' || found.includes('sre')
    if (!isOperator && !found.includes('staff')) return [403, 403]
    const isProved = proof === 'X-Diana-Request: 1' || proof === 'Sec-Fetch-Site: same-origin'
    return [200, isOperator && isProved ? 200 : 403]
  }

  it('any combination of peers, headers, tokens and proofs is answered as the documentation says', async () => {
    let guesses = 0
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(peers, users, groups, auth, proofs, spelled('X-User'), spelled('X-Groups')),
        async ([from, names, lists, auth, proof, userHeader, groupsHeader]) => {
          const [reads, changes] = expected(from, names, lists, auth, proof)
          // each client has its own address, so that none has guessed too often
          const client = `X-Forwarded-For: 10.0.${guesses >> 8}.${guesses++ & 255}`
          if (reads === 401 && auth === 'Bearer aaa.bbb.ccc') return
          const lines = [
            ...names.map(name => `${userHeader}: ${name}`),
            ...lists.map(list => `${groupsHeader}: ${list}`),
            ...(auth === undefined ? [] : [`Authorization: ${auth}`]),
            ...(proof === undefined ? [] : [proof]),
            client,
          ]
          expect((await send(lines, { from })).status).toBe(reads)
          const change = { from, method: 'POST', path: '/blocks', body: { rule: 'each', key: 'x', for: '1s' } }
          expect((await send(lines, change)).status).toBe(changes)
        },
      ),
      { numRuns: randomRuns(150) },
    )
  })
})
