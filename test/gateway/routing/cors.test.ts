import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const page = 'https://app.example'

async function ask(url: string, headers: Record<string, string> = {}, method = 'GET') {
  const answer = await request(url, { method: method as 'GET', headers })
  await answer.body.dump()
  return { status: answer.statusCode, headers: answer.headers }
}

const preflight = {
  origin: page,
  'access-control-request-method': 'PUT',
  'access-control-request-headers': 'authorization, x-a',
}

describe('pages of other origins', () => {
  const none = [{ id: 'none', limit: '0/h' }]
  test.each([
    ['a refusal', none, {}, 503],
    ['a service that cannot be reached', undefined, { to: 'http://127.0.0.1:9' }, 502],
    ['a path that no route takes', undefined, { path: '/elsewhere' }, 404],
  ])(
    'pages of other origins may read %s if their origin is listed, and others may not',
    async (_, rules, more, status) => {
      const { url: to } = await rig.serve()
      const gateway = { cors: { origins: [page] }, routes: [{ to, ...more }] }
      const { url } = await rig.guard({ ...(rules ? { rules } : {}), gateway })
      const listed = await ask(url, { origin: page })
      expect(listed.status).toBe(status)
      expect(listed.headers['access-control-allow-origin']).toBe(page)
      expect(listed.headers['access-control-expose-headers']).toContain('Retry-After')
      expect(listed.headers.vary).toContain('Origin')
      for (const origin of ['https://evil.example', 'https://app.example.evil', 'null', 'http://app.example']) {
        const other = await ask(url, { origin })
        expect([origin, other.headers['access-control-allow-origin']]).toEqual([origin, undefined])
      }
    },
  )

  test('preflight requests are answered by the gateway, and no rule counts them', async () => {
    const { url: to, received } = await rig.serve()
    const rules = [{ id: 'one', limit: '1/h' }]
    const { url } = await rig.guard({
      rules,
      gateway: { cors: { origins: page, credentials: true }, routes: [{ to }] },
    })
    for (let call = 0; call < 5; call++) {
      const { status, headers } = await ask(`${url}/a`, preflight, 'OPTIONS')
      expect(status).toBe(204)
      expect(headers).toMatchObject({
        'access-control-allow-origin': page,
        'access-control-allow-credentials': 'true',
        'access-control-allow-methods': 'PUT',
        'access-control-allow-headers': 'authorization, x-a',
        'access-control-max-age': '600',
      })
    }
    expect(received).toEqual([])
    // what is no preflight of a listed origin is a call like any other
    expect((await ask(`${url}/a`, { origin: page }, 'OPTIONS')).status).toBe(200)
    expect((await ask(`${url}/a`, { ...preflight, origin: 'https://evil.example' }, 'OPTIONS')).status).toBe(503)
  })

  test('pages of other origins get the CORS headers of the service if it sends them', async () => {
    const { url: to } = await rig.serve((_request, response) => {
      response
        .setHeader('access-control-allow-origin', 'https://other.example')
        .setHeader('x-frame-options', 'DENY')
        .end()
    })
    const answerHeaders = { 'x-frame-options': 'SAMEORIGIN', 'strict-transport-security': 'max-age=1' }
    const { url } = await rig.guard({ gateway: { cors: { origins: '*' }, answerHeaders, routes: [{ to }] } })
    const { headers } = await ask(url, { origin: page })
    expect(headers).toMatchObject({
      'access-control-allow-origin': 'https://other.example',
      'x-frame-options': 'DENY',
      'strict-transport-security': 'max-age=1',
    })
  })
})

test.each([
  [{ origins: ['*', page] }, 'has "*" beside other origins'],
  [{ origins: '*', credentials: true }, '"*" is not enough'],
  [{ origins: 'app.example' }, 'is not an origin'],
  [{ origins: 'https://app.example/' }, 'write "https://app.example"'],
  [{}, 'origins'],
])('the cors setting %j is a mistake', async (cors, told) => {
  await expect(rig.guard({ gateway: { cors, routes: [{ to: 'http://127.0.0.1:9' }] } })).rejects.toThrow(told)
})
