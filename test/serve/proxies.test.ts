import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { build } from '../helpers/program-rig.ts'
import { type Failing, type Parts, proxies } from './proxies.ts'
import { type ServeProgram, startServe } from './serve-rig.ts'

const run = promisify(execFile)
const limit = 100
const mostTries = 5

const rig = new GatewayRig()
let diana: ServeProgram
let parts: Parts
let served: Map<string, number>

beforeAll(async () => {
  build()
  served = new Map()
  const service = await rig.serve((request, response) => {
    const path = request.url!.split('?')[0]!
    served.set(path, (served.get(path) ?? 0) + 1)
    if (path === '/echo') request.pipe(response)
    else response.end('served')
  })
  diana = await startServe(rig, {
    answer: { status: 429 },
    // one proxy: callers are of this machine, too, and may not name other addresses
    trustProxy: 1,
    rules: [
      { id: 'each', match: { path: '/load/*' }, by: 'resource', limit: `${limit}/h` },
      { id: 'few', match: { path: '/few/**' }, by: ['ip', 'resource'], limit: '2/h' },
      { id: 'full', match: { path: '/full' }, limit: '0/h', answer: { status: 503 } },
    ],
    deny: { 'header:x-evil': ['yes'] },
    serve: { spoe: { port: 0 } },
  })
  parts = { service: new URL(service.url).host, http: new URL(diana.url).host, spoe: diana.spoe! }
})
afterAll(() => rig.close())

const get = async (url: string, headers: Record<string, string> = {}) => {
  const answer = await fetch(url, { headers })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** All at one moment, since each takes a second to start. */
const urls = new Map<string, string>()
const urlOf = (name: string, failing: Failing): string => urls.get(`${name} ${failing}`)!

beforeAll(async () => {
  const started = proxies.flatMap(({ name, start }) =>
    (['open', 'closed'] as const).map(async failing => {
      urls.set(`${name} ${failing}`, await start(rig, parts, failing))
    }),
  )
  await Promise.all(started)
})

describe.each(proxies)('$name in front of a service', ({ name }) => {
  it(`behind ${name}, refused callers get the status, the headers and the body of Diana`, async () => {
    const url = urlOf(name, 'open')
    const first = await get(`${url}/few/${name}?a=b`)
    expect(first).toMatchObject({ status: 200, text: 'served' })
    expect(first.headers.get('ratelimit')).toMatch(/^"few";r=1;t=\d+$/)
    expect(first.headers.get('ratelimit-policy')).toBe('"few";q=2;w=3600')
    // other spellings of the path are the same path
    expect((await get(`${url}/few/%${name.charCodeAt(0).toString(16)}${name.slice(1)}`)).status).toBe(200)
    const refused = await get(`${url}/few/${name}`)
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(refused.headers.get('ratelimit')).toMatch(/^"few";r=0/)
    expect(refused.headers.get('content-type')).toBe('application/problem+json')
    expect(JSON.parse(refused.text)).toMatchObject({ status: 429, rule: 'few' })
    expect(await get(`${url}/full`)).toMatchObject({ status: 503 })
    expect((await get(`${url}/other`, { 'x-evil': 'yes' })).status).toBe(403)
    const body = 'b'.repeat(100_000)
    expect(await (await fetch(`${url}/echo`, { method: 'POST', body })).text()).toBe(body)
    const unlimited = await get(`${url}/other`)
    expect(unlimited).toMatchObject({ status: 200, text: 'served' })
    expect(unlimited.headers.get('ratelimit')).toBeNull()
  })

  it(`behind ${name}, callers cannot say themselves what they ask for or where they are`, async () => {
    const url = urlOf(name, 'open')
    const lies = {
      ...{ 'x-original-uri': '/free', 'x-original-method': 'GET', 'x-forwarded-uri': '/free' },
      ...{ 'x-forwarded-method': 'GET', 'x-original-url': '/free', 'x-rewrite-url': '/free' },
    }
    const path = `/few/lies-${name}`
    const statuses: number[] = []
    for (let call = 0; call < 3; call++) {
      statuses.push((await get(`${url}${path}`, { ...lies, 'x-forwarded-for': `203.0.113.${call}` })).status)
    }
    expect(statuses).toEqual([200, 200, 429])
  })

  it(`behind ${name}, exactly as many calls pass under load as the limit allows`, async () => {
    // a machine with other work may take longer than wrk runs until the limit is reached
    for (let attempt = 0; attempt < mostTries; attempt++) {
      const path = `/load/${name}-${attempt}`
      const { stdout } = await run('wrk', [
        '-t1',
        '-c64',
        '-d1s',
        `${urlOf(name, name === 'HAProxy' ? 'closed' : 'open')}${path}`,
      ])
      const total = Number(/(\d+) requests in/.exec(stdout)![1])
      const refused = Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0)
      expect(served.get(path)).toBeLessThanOrEqual(limit)
      if (refused === 0) continue
      expect(served.get(path)).toBe(limit)
      // calls that were under way when wrk stopped are not in its count
      expect(total - refused).toBeLessThanOrEqual(limit)
      expect(total - refused).toBeGreaterThan(limit - 64)
      return
    }
    throw new Error('no call was refused')
  })
})

describe('Diana is late', () => {
  it('a call whose answer is late is refused by the shipped files, and the next one is asked about as usual', async () => {
    diana.child.kill('SIGSTOP')
    const late = proxies.flatMap(({ name, lateStatus }) =>
      (['open', 'closed'] as const).map(async failing => {
        const { status } = await get(`${urlOf(name, failing)}/full`)
        return [name, failing, status, failing === 'open' ? lateStatus.open : lateStatus.shipped] as const
      }),
    )
    for (const [name, failing, status, expected] of await Promise.all(late)) {
      expect([name, failing, status]).toEqual([name, failing, expected])
    }
    diana.child.kill('SIGCONT')
    for (const { name } of proxies) {
      for (const failing of ['open', 'closed'] as const) {
        // Diana first answers what was asked while it stood still
        await expect
          .poll(async () => (await get(`${urlOf(name, failing)}/other`)).status, { timeout: 10_000 })
          .toBe(200)
        expect([name, failing, (await get(`${urlOf(name, failing)}/full`)).status]).toEqual([name, failing, 503])
      }
    }
  })
})

describe('Diana is killed', () => {
  it('proxies that fail open let requests pass, and those that fail closed refuse them', async () => {
    diana.child.kill('SIGKILL')
    await diana.ended
    for (const { name, closedStatus } of proxies) {
      for (let call = 0; call < 3; call++) {
        expect([name, (await get(`${urlOf(name, 'open')}/few/${name}`)).status]).toEqual([name, 200])
      }
      expect([name, (await get(`${urlOf(name, 'closed')}/few/${name}`)).status]).toEqual([name, closedStatus])
      const body = 'b'.repeat(100_000)
      const posted = await fetch(`${urlOf(name, 'open')}/echo`, { method: 'POST', body })
      expect([name, posted.status, (await posted.text()).length]).toEqual([name, 200, body.length])
    }
  })
})
