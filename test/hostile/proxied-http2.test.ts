import { setTimeout as pause } from 'node:timers/promises'
import { randomRuns } from '@test/random-runs'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { Http2Caller } from '../helpers/http2-rig.ts'
import { framesOf, http2Proxies, mostResets, resetMany, sendFrames, ways } from './proxied-http2.ts'

// Proxies carry the calls of all callers over few connections of HTTP/2: what one caller does there must neither end the calls of
// others nor be taken for one of them.

const rig = new GatewayRig()
const urls = new Map<string, string>()
const names = http2Proxies.map(({ name }) => name)
/** Calls that reached the service and are no calls of the well-behaved caller. */
const strange: string[] = []
beforeAll(async () => {
  const { url } = await rig.serve((request, response) => {
    const { 'x-own': own = '' } = request.headers
    if (own === '' && request.url !== '/ready') strange.push(`${request.method} ${request.url} ${request.headers.host}`)
    request.on('error', () => {}).resume()
    setTimeout(() => response.end(`served ${own}`), request.url === '/slow' ? 200 : 0)
  })
  const { port } = await rig.guard({ trustProxy: ['127.0.0.1'], gateway: { routes: [{ to: url }] } })
  await Promise.all(http2Proxies.map(async ({ name, start }) => urls.set(name, await start(rig, port))))
})
afterAll(() => rig.close())

/** A caller who keeps calling while `attack` runs; gives back what it got instead of its own answers. */
async function besides(url: string, attack: () => Promise<void>): Promise<{ served: number; failures: unknown[] }> {
  const caller = new Http2Caller(url)
  let isOver = false
  let served = 0
  const failures: unknown[] = []
  const keepCalling = async (method: string, path: string): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const own = `${method}${path}${n}`
      const headers = { ':method': method, ':path': path, 'x-own': own }
      const { status, body, reset } = await caller.call(headers, method === 'POST' ? 'body' : undefined)
      if (status === 200 && body === `served ${own}`) served++
      else failures.push([own, status, body, reset])
      await pause(5)
    }
  }
  const calls = ['GET', 'POST'].flatMap(method => ['/slow', '/quick'].map(path => keepCalling(method, path)))
  await attack()
  isOver = true
  await Promise.all(calls)
  await caller.close()
  return { served, failures }
}

test('resets by the thousand of one caller end no call of another caller of the same proxy', async () => {
  const results = await Promise.all(
    names.map(async name => {
      const url = urls.get(name)!
      return [
        name,
        await besides(url, () =>
          resetMany(url, { ':path': '/slow', 'x-own': 'attacker' }, Math.max(mostResets, randomRuns(mostResets))),
        ),
      ] as const
    }),
  )
  for (const [name, { served, failures }] of results) {
    expect([name, failures]).toEqual([name, []])
    expect(served).toBeGreaterThan(3)
  }
})

test('a call that can be read in two ways ends no call of another caller, and is never two calls', async () => {
  const tried = randomRuns(160)
  for (const name of names) {
    const url = urls.get(name)!
    const samples = fc.sample(ways, tried)
    const { served, failures } = await besides(url, async () => {
      for (let first = 0; first < samples.length; first += 20) {
        await Promise.all(samples.slice(first, first + 20).map(way => sendFrames(url, framesOf(way))))
      }
    })
    expect([name, failures]).toEqual([name, []])
    expect(served).toBeGreaterThan(3)
  }
  // no body, path or header became a call of its own, nor another host than the one that was named
  expect(strange.filter(one => /\/other/.test(one) && !one.startsWith('POST /other'))).toEqual([])
  expect(strange.filter(one => /[\r\n]/.test(one))).toEqual([])
  expect(strange.length).toBeLessThanOrEqual(tried * names.length)
})
