import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { startRedis } from '../packages/limiter/src/sources/doubles/redis-server.ts'
import { GatewayRig } from './rigs/gateway-rig.ts'
import { build, call, childrenOf, load, type Program, startDiana } from './rigs/program-rig.ts'

const rig = new GatewayRig()
const programs: Program[] = []

beforeAll(build)
afterEach(async () => {
  for (const { child, ended } of programs.splice(0)) {
    child.kill('SIGTERM')
    const late = setTimeout(() => child.kill('SIGKILL'), 8000)
    await ended
    clearTimeout(late)
  }
  await rig.close()
})

async function start(document: object, ...args: readonly string[]): Promise<Program> {
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, stringify(document))
  const program = await startDiana(['--config', config, ...args])
  programs.push(program)
  return program
}

async function wrk(url: string, seconds: number): Promise<{ all: number; refused: number }> {
  const { stdout } = await promisify(execFile)('wrk', ['-t1', '-c16', `-d${seconds}s`, url])
  const number = (pattern: RegExp): number => Number(pattern.exec(stdout)?.[1] ?? 0)
  return { all: number(/(\d+) requests in/), refused: number(/Non-2xx or 3xx responses: (\d+)/) }
}

const sum = (outcomes: ReadonlyMap<string, number>, ...names: string[]): number =>
  names.reduce((total, name) => total + (outcomes.get(name) ?? 0), 0)

describe('workers', () => {
  test('admit exactly the limit together, under wrk', async () => {
    const { url, received } = await rig.serve()
    const rules = [
      { id: 'all', limit: '2000/h' },
      { id: 'each', by: 'ip', limit: '100000/h', algorithm: 'token-bucket' },
    ]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const { all, refused } = await wrk(program.url, 2)
    expect(all).toBeGreaterThan(2100)
    expect(received).toHaveLength(2000)
    // wrk leaves the last calls unread
    expect(all - refused).toBeGreaterThan(1980)
    expect(program.said()).not.toContain('by themselves')
  })

  test('one that is killed costs only the calls it had, and no count', async () => {
    const { url, received } = await rig.serve()
    const rules = [{ id: 'all', limit: '3000/h' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const connections = 8
    const { stop, outcomes } = load(program.url, connections)
    await expect.poll(() => sum(outcomes, '200'), { timeout: 10_000 }).toBeGreaterThan(300)
    const [victim, other] = childrenOf(program.child.pid!).workers
    process.kill(victim!, 'SIGKILL')
    await expect.poll(() => sum(outcomes, '503'), { timeout: 20_000 }).toBeGreaterThan(50)
    const { workers } = childrenOf(program.child.pid!)
    await stop()
    expect(workers).toContain(other)
    expect(workers).toHaveLength(2)
    const failed = [...outcomes.keys()].filter(outcome => outcome !== '200' && outcome !== '503')
    expect(sum(outcomes, ...failed)).toBeLessThanOrEqual(connections)
    // a call of the dead worker may have been counted and not sent, never sent and not counted
    expect(received.length).toBeLessThanOrEqual(3000)
    expect(received.length).toBeGreaterThanOrEqual(3000 - connections)
  })

  test('one that is killed gives back the places it held', async () => {
    const pending: ServerResponse[] = []
    const { url } = await rig.serve((_request, response) => pending.push(response))
    const rules = [{ id: 'places', limit: 4, algorithm: 'concurrency' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const held = Array.from({ length: 4 }, () => call(program.url))
    await expect.poll(() => pending.length, { timeout: 5000 }).toBe(4)
    expect(await call(program.url)).toBe('503')
    const dead: string[] = []
    for (const one of held) one.then(outcome => dead.push(outcome))
    process.kill(childrenOf(program.child.pid!).workers[0]!, 'SIGKILL')
    await expect.poll(() => dead.length).toBeGreaterThan(0)
    expect(new Set(dead)).toEqual(new Set(['ECONNRESET']))
    const again = Array.from({ length: dead.length }, () => call(program.url))
    await expect.poll(() => pending.length, { timeout: 5000 }).toBe(4 + dead.length)
    expect(await call(program.url)).toBe('503')
    for (const response of pending) response.end()
    expect(new Set(await Promise.all(again))).toEqual(new Set(['200']))
  })

  test('go on while nobody counts, and count together again', async () => {
    const { url } = await rig.serve()
    const rules = [{ id: 'all', limit: '1000000/h' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const { stop, outcomes } = load(program.url, 8)
    await expect.poll(() => sum(outcomes, '200'), { timeout: 10_000 }).toBeGreaterThan(200)
    process.kill(childrenOf(program.child.pid!).counting[0]!, 'SIGKILL')
    await expect.poll(program.said, { timeout: 10_000 }).toContain('count by themselves')
    await expect.poll(program.said, { timeout: 10_000 }).toContain('count together again')
    expect([...(await stop()).keys()]).toEqual(['200'])
  })

  test('finish what they have begun when told to end', async () => {
    const { url } = await rig.serve((_request, response) => setTimeout(() => response.end('served'), 20))
    const rules = [{ id: 'all', limit: '1000000/h' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const { stop, outcomes } = load(program.url, 16)
    await expect.poll(() => sum(outcomes, '200'), { timeout: 10_000 }).toBeGreaterThan(100)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
    expect([...(await stop()).keys()].sort()).toEqual(['200', 'ECONNREFUSED'])
  })

  test('are not started on rules that cannot be obeyed', async () => {
    const config = join(rig.folder(), 'diana.yaml')
    writeFileSync(config, 'rules: [{ id: all, limit: 5/x }]')
    await expect(startDiana(['--config', config, '--workers', '2'])).rejects.toThrow(/5\/x/)
  })
})

describe('one process', () => {
  test('finishes what it has begun when told to end', async () => {
    const { url } = await rig.serve((_request, response) => setTimeout(() => response.end('served'), 20))
    const rules = [{ id: 'all', limit: '1000000/h' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } })
    const { stop, outcomes } = load(program.url, 16)
    await expect.poll(() => sum(outcomes, '200'), { timeout: 10_000 }).toBeGreaterThan(100)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
    expect([...(await stop()).keys()].sort()).toEqual(['200', 'ECONNREFUSED'])
  })
})

describe('two gateways', () => {
  test('on one Redis share one limit', async () => {
    const redis = await startRedis()
    rig.later(() => redis.close())
    const { url, received } = await rig.serve()
    const document = {
      store: { redis: `redis://${redis.authority}`, timeout: '2s' },
      rules: [{ id: 'all', limit: '500/h' }],
      gateway: { routes: [{ to: url }] },
    }
    const both = [await start(document), await start(document)]
    const loads = both.map(program => load(program.url, 4))
    await expect.poll(() => loads.every(({ outcomes }) => sum(outcomes, '503') > 50), { timeout: 20_000 }).toBe(true)
    for (const { stop } of loads) expect([...(await stop()).keys()].sort()).toEqual(['200', '503'])
    expect(received).toHaveLength(500)
  })
})
