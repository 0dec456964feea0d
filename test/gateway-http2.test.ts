import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from './rigs/gateway-rig.ts'
import { answerOn, Http2Caller } from './rigs/http2-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

function call(url: string, options = {}): Http2Caller {
  const caller = new Http2Caller(url, options)
  rig.later(() => caller.close())
  return caller
}

async function guardEcho(gateway: object = {}, rules?: object[]) {
  const service = await rig.serve((incoming, response) => {
    response.setHeader('x-path', incoming.url ?? '')
    incoming.pipe(response)
  })
  const guarded = await rig.guard({ ...(rules && { rules }), gateway: { ...gateway, routes: [{ to: service.url }] } })
  return { ...guarded, received: service.received, caller: call(guarded.url) }
}

describe('a caller with prior knowledge of HTTP/2', () => {
  test('is served on the plain port, with calls of one connection side by side', async () => {
    const { caller, received } = await guardEcho()
    const calls = Array.from({ length: 20 }, (_, at) =>
      caller.call({ ':path': `/a/${at}`, ':method': 'POST', 'x-at': `${at}` }, `body ${at}`),
    )
    const answers = await Promise.all(calls)
    expect(answers.map(({ status, body }) => [status, body])).toEqual(answers.map((_, at) => [200, `body ${at}`]))
    expect(received).toHaveLength(20)
    const { headers, httpVersion } = received.find(({ headers }) => headers['x-at'] === '3')!
    expect(httpVersion).toBe('1.1')
    expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' })
    expect(headers.host).toBe(caller.session.originSet?.[0] ?? headers.host)
    expect(Object.keys(headers).filter(name => name.startsWith(':'))).toEqual([])
  })

  test('is counted call by call, and told by the same headers as a caller of HTTP/1.1', async () => {
    const { caller, received, url } = await guardEcho({}, [{ id: 'all', limit: '3/m', answer: { status: 429 } }])
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => caller.call({ ':path': '/a' })))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 429, 429])
    const refused = answers.find(({ status }) => status === 429)!
    expect(JSON.parse(refused.body)).toMatchObject({ status: 429, rule: 'all' })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect((await fetch(`${url}/a`)).status).toBe(429)
    expect(received).toHaveLength(3)
  })
})

describe('bodies', () => {
  test('refused uploads leave no stream open', async () => {
    const { caller } = await guardEcho({}, [{ id: 'all', limit: '0/m' }])
    for (let at = 0; at < 300; at++) {
      const stream = caller.open({ ':path': '/a', ':method': 'POST' }, true)
      stream.write('some of it')
      const { status } = await answerOn(stream)
      expect(status).toBe(503)
    }
  })
})
