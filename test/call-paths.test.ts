import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { Session } from 'node:inspector/promises'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createGateway } from 'diana-gateway'
import { createLimiter } from 'diana-limiter'
import { diana } from 'diana-limiter/express'
import express from 'express'
import { afterAll, describe, expect, it } from 'vitest'
import { startRedis } from './helpers/servers/redis-server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const MAX_FILES = 18
const MAX_GATEWAY_FILES = 30
const MAX_REDIS_FILES = 51
const rules = [{ id: 'per-address', by: 'ip', limit: '1000/m' }]
const closing: (() => unknown)[] = []

afterAll(async () => {
  for (const close of closing.reverse()) await close()
})

/** The source files of which a function runs during every call, as ARCHITECTURE.md names them. */
async function filesOf(call: () => Promise<unknown>): Promise<string[]> {
  // the first calls create what later ones use again
  for (let i = 0; i < 3; i++) await call()
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  const runs: string[][] = []
  for (let i = 0; i < 40; i++) runs.push(await filesRun(session, call))
  session.disconnect()
  // what a timer runs meanwhile is not part of a call; on a busy machine timers run during many calls
  return runs[0]!.filter(file => runs.every(files => files.includes(file)))
}

async function filesRun(session: Session, call: () => Promise<unknown>): Promise<string[]> {
  await session.post('Profiler.takePreciseCoverage')
  await call()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const run = result.filter(({ functions }) => {
    return functions.some(({ functionName, ranges: [range] }) => {
      // Vite makes a short getter of each exported name
      const isExport = functionName === '' && range!.endOffset - range!.startOffset < 60
      return range!.count > 0 && !isExport
    })
  })
  return run.flatMap(({ url }) => /packages\/((?:limiter|gateway)\/src\/.*\.ts)$/.exec(url)?.[1] ?? []).sort()
}

/** True if a call without a filter runs through a file, too. */
function isDeciding(file: string): boolean {
  return !/\/(?:filters|answers)\//.test(file)
}

/** The files that the steps under a heading of ARCHITECTURE.md name. */
function namedUnder(heading: string): string[] {
  const page = readFileSync(`${root}ARCHITECTURE.md`, 'utf8')
  const begin = page.indexOf(heading)
  expect(begin, heading).toBeGreaterThan(0)
  const [steps] = page.slice(begin).split(/\n(?=\*\*|##|A call that waits)/)
  return [...new Set([...steps!.matchAll(/`((?:limiter|gateway)\/src\/[\w/.-]+\.ts)`/g)].map(match => match[1]!))]
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closing.push(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders`
}

async function get(url: string): Promise<void> {
  const response = await fetch(url)
  expect([response.status, await response.text()]).toEqual([200, 'ok'])
}

describe('the paths of a call in ARCHITECTURE.md', () => {
  it.each(['**A filter', '**The gateway', '**Counted in Redis'])('the files named under %s exist', heading => {
    const named = namedUnder(heading)
    expect(named.length).toBeGreaterThan(4)
    expect(named.filter(file => !existsSync(`${root}packages/${file}`))).toEqual([])
  })

  it(`a local Express call admitted by one rule runs through the named files alone, at most ${MAX_FILES}`, async () => {
    const limiter = await createLimiter({ rules })
    closing.push(() => limiter.close())
    const app = express()
    app.use(diana(limiter))
    app.get('/orders', (_request, response) => void response.send('ok'))
    const url = await listen(createServer(app))
    const files = await filesOf(() => get(url))
    expect(files).toEqual(namedUnder('**A filter').sort())
    expect(files.length).toBeLessThanOrEqual(MAX_FILES)
  })

  it(`a call through the gateway runs through the named files of the gateway alone, at most ${MAX_GATEWAY_FILES}`, async () => {
    const service = createServer((_request, response) => response.end('ok'))
    const upstream = new URL(await listen(service)).origin
    const limiter = await createLimiter({ rules })
    closing.push(() => limiter.close())
    const gateway = await createGateway({ limiter, upstream })
    closing.push(() => gateway.close())
    const url = `${await gateway.listen({ port: 0, host: '127.0.0.1' })}/orders`
    // the files of the limiter are those of the path above
    const files = (await filesOf(() => get(url))).filter(file => file.startsWith('gateway/'))
    expect(files).toEqual(namedUnder('**The gateway').sort())
    expect(files.length).toBeLessThanOrEqual(MAX_GATEWAY_FILES)
  })

  it(`a call that is counted in Redis runs through at most ${MAX_REDIS_FILES} files, all of those that its path names`, async () => {
    const server = await startRedis()
    closing.push(() => server.close())
    const limiter = await createLimiter({ rules, store: { redis: server.client, timeout: '2s' } })
    closing.push(() => limiter.close())
    // of a busy caller permits are leased, and their calls do not ask Redis
    let calls = 0
    const call = async () => {
      const ip = `203.0.113.${calls++ % 5}`
      expect((await limiter.check({ method: 'GET', path: '/', ip })).allowed).toBe(true)
    }
    const files = await filesOf(call)
    const named = [...new Set([...namedUnder('**Counted in Redis'), ...namedUnder('**A filter').filter(isDeciding)])]
    const inStores = (file: string) => file.includes('/stores/')
    expect(files).toEqual(expect.arrayContaining(named))
    // the page tells what most files of a store are for, and not each of them
    expect(files.filter(file => !inStores(file))).toEqual(named.filter(file => !inStores(file)).sort())
    expect(files.length).toBeLessThanOrEqual(MAX_REDIS_FILES)
  })
})
