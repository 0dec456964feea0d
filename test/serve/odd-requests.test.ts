import { randomRuns } from '@test/random-runs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { build } from '../helpers/program-rig.ts'
import { oddRequests } from './odd-requests.ts'
import { type Parts, proxies } from './proxies.ts'
import { callRaw } from './raw-call.ts'
import { type ServeProgram, startServe } from './serve-rig.ts'

const seed = process.env.ODD_SEED ?? 1
const count = Number(process.env.ODD_REQUESTS ?? randomRuns(200))

/** More patience than any proxy has. */
const waiting = { by: 'resource', algorithm: 'token-bucket', burst: 1, whenFull: 'wait', queue: { timeout: '2h' } }

const rig = new GatewayRig()
const ports = new Map<string, number>()
const servedPaths: string[] = []
let diana: ServeProgram

beforeAll(async () => {
  build()
  const service = await rig.serve((request, response) => {
    servedPaths.push(request.url!)
    response.end('served')
  })
  service.server.on('connect', (request, socket) => {
    servedPaths.push(request.url!)
    socket.end('HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
  })
  diana = await startServe(rig, {
    answer: { status: 429 },
    trustProxy: 1,
    rules: [
      { id: 'none', match: { path: '/full/**' }, limit: '0/h' },
      { ...waiting, id: 'late', match: { path: '/late/*' }, limit: '1/h' },
      { ...waiting, id: 'soon', match: { path: '/soon/*' }, limit: '1/400ms' },
      { id: 'other', match: { path: '/room' }, by: 'ip', limit: '1000000/h' },
    ],
    serve: { spoe: { port: 0 } },
  })
  const parts: Parts = { service: new URL(service.url).host, http: new URL(diana.url).host, spoe: diana.spoe! }
  await Promise.all(
    proxies.map(async ({ name, start }) => {
      ports.set(name, Number(new URL(await start(rig, parts, 'shipped')).port))
    }),
  )
})
afterAll(() => rig.close())

/** True if a service that joins slashes and resolves dots takes a target for one below `/full/`. */
const isBelowFull = (target: string): boolean =>
  target.startsWith('/') && /^\/full(\/|$)/i.test(new URL(`http://a${target.replaceAll(/\/+/g, '/')}`).pathname)

const plain = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n`

describe.each(proxies)('$name', ({ name }) => {
  it(`behind ${name}, no odd request passes a limit, and none changes what another caller gets`, async () => {
    const port = ports.get(name)!
    const failures: string[] = []
    const statuses = new Map<number, number>()
    for (const { name: what, bytes, leaves, isLimited } of oddRequests(seed, count)) {
      const status = await callRaw({ port, bytes, leaves, from: '127.0.0.9', waitMs: 300 })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      // these are what the proxies answer for a Diana that has failed; others may come from the service
      if (isLimited && [500, 502, 503, 504].includes(status))
        failures.push(`${what} got ${status}, so Diana has not answered`)
      const others = await Promise.all(
        ['/full/other', '/room'].map(path => callRaw({ port, bytes: plain(path), from: '127.0.0.8', waitMs: 5000 })),
      )
      if (`${others}` !== '429,200') failures.push(`after ${what} (${status}), another caller got ${others}`)
      const passed = servedPaths.splice(0).filter(isBelowFull)
      if (passed.length > 0) failures.push(`${what} (${status}) reached the service: ${passed[0]!.slice(0, 40)}`)
    }
    if (process.env.ODD_REQUESTS) console.info(name, count, Object.fromEntries(statuses))
    expect(failures).toEqual([])
    expect(diana.child.exitCode).toBeNull()
  })

  it(`behind ${name}, a call that a rule makes wait for longer than the proxy does is refused`, async () => {
    const call = (path: string): Promise<number> =>
      callRaw({ port: ports.get(name)!, bytes: plain(`/${path}/${name}`), from: '127.0.0.8', waitMs: 5000 })
    expect([await call('late'), await call('late'), await call('late')]).toEqual([200, 429, 429])
    // over SPOE, calls may wait for 15 ms only
    if (name !== 'HAProxy') expect([await call('soon'), await call('soon')]).toEqual([200, 200])
  })
})
