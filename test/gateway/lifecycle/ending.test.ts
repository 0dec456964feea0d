import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '../../helpers/free-port.mjs'
import { GatewayRig, sendRaw, statusesIn } from '../../helpers/gateway-rig.ts'
import { call } from '../../helpers/load.ts'
import { build, childrenOf, dianaProgram, isRunning, killLater, startProgram } from '../../helpers/program-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const rig = new GatewayRig()

beforeAll(build)
afterEach(() => rig.close())

const start = (gateway: object, ...args: readonly string[]) => startProgram(rig, { gateway }, args)

/** A service whose answers wait until they are asked for. */
async function hesitant(): Promise<{ url: string; waiting: ServerResponse[] }> {
  const waiting: ServerResponse[] = []
  const { url } = await rig.serve((request, response) => {
    if (request.url === '/slow') waiting.push(response)
    else response.end('served')
  })
  return { url, waiting }
}

describe('a supervisor that is killed', () => {
  test('workers of a killed supervisor finish their calls, and then end', async () => {
    const { url, waiting } = await hesitant()
    const program = await start({ routes: [{ to: url }] }, '--workers', '2')
    const { workers } = childrenOf(program.child.pid!)
    const called = fetch(`${program.url}/slow`)
    await expect.poll(() => waiting.length).toBe(1)
    program.child.kill('SIGKILL')
    await new Promise(resolve => setTimeout(resolve, 500))
    waiting[0]!.end('whole')
    expect(await (await called).text()).toBe('whole')
    await expect.poll(() => workers.filter(isRunning), { timeout: 20_000 }).toEqual([])
  })
})

test('a supervisor that is killed while its processes are being started leaves none of them behind', async () => {
  const { url } = await hesitant()
  const program = await start({ routes: [{ to: url }] }, '--workers', '2')
  const first = childrenOf(program.child.pid!)
  for (const pid of [...first.workers, ...first.counting]) process.kill(pid, 'SIGKILL')
  const started = (): number[] => {
    const { workers, counting } = childrenOf(program.child.pid!)
    return [...workers, ...counting].filter(pid => !first.workers.includes(pid) && !first.counting.includes(pid))
  }
  await expect.poll(() => childrenOf(program.child.pid!).counting.length, { timeout: 20_000, interval: 1 }).toBe(1)
  await expect.poll(() => started().length, { timeout: 20_000, interval: 1 }).toBeGreaterThan(1)
  const left = started()
  for (const pid of left) killLater(rig, pid)
  program.child.kill('SIGKILL')
  await expect.poll(() => left.filter(isRunning), { timeout: 20_000 }).toEqual([])
})

describe('a gateway that is stopped', () => {
  const waitsOnce = async (workers: string): Promise<void> => {
    const { url } = await hesitant()
    const gateway = { routes: [{ to: url }], healthPath: '/up', shutdown: { delay: '4s', timeout: '2s' } }
    const program = await start(gateway, '--workers', workers)
    expect((await fetch(`${program.url}/up`)).status).toBe(200)
    const begun = performance.now()
    program.child.kill('SIGTERM')
    await expect
      .poll(() => fetch(`${program.url}/up`).then(({ status }) => status), { timeout: 1900, interval: 10 })
      .toBe(503)
    expect((await fetch(`${program.url}/a`)).status).toBe(200)
    expect(await program.ended).toBe(0)
    const tookMs = performance.now() - begun
    expect(tookMs).toBeGreaterThan(3900)
    // twice the delay would be 8 s
    expect(tookMs).toBeLessThan(7900)
  }

  test('a gateway with one worker or two waits for shutdown.delay once, not ready but serving', async () => {
    await Promise.all(['1', '2'].map(waitsOnce))
  })
})

/** Starts the command and waits until its first worker takes calls; the other workers are still being started then. */
async function startFirstWorker(gateway: object, workers: number) {
  const port = await freePort()
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, stringify({ rules: [{ id: 'all', limit: '1000000/s' }], gateway }))
  const args = ['--port', String(port), '--admin-port', 'off', '--workers', String(workers)]
  const child = spawn(process.execPath, [dianaProgram, 'start', '--config', config, ...args], { stdio: 'ignore' })
  rig.later(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const url = `http://127.0.0.1:${port}`
  await expect.poll(() => call(url), { timeout: 30_000, interval: 5 }).toBe('200')
  return { child, ended, url }
}

test('a signal that comes while workers are still being started cuts no call, and SIGTERM ends the gateway', async () => {
  const { url: to, waiting } = await hesitant()
  const { child, ended, url } = await startFirstWorker({ routes: [{ to }], shutdown: { timeout: '20s' } }, 4)
  const called = fetch(`${url}/slow`)
  await expect.poll(() => waiting.length, { interval: 5 }).toBe(1)
  for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGTERM'] as const) child.kill(signal)
  await new Promise(resolve => setTimeout(resolve, 500))
  expect([child.exitCode, child.signalCode]).toEqual([null, null])
  waiting[0]!.end('whole')
  expect(await (await called).text()).toBe('whole')
  expect(await ended).toBe(0)
})

describe('a gateway with two workers', () => {
  const lasting = new GatewayRig()
  let program: Awaited<ReturnType<typeof startProgram>>
  const children = () => childrenOf(program.child.pid!)

  beforeAll(async () => {
    const { url } = await lasting.serve()
    const gateway = { routes: [{ to: url }], admin: { port: 0 }, shutdown: { timeout: '20s' } }
    program = await startProgram(lasting, { gateway }, ['--workers', '2'])
  })
  afterAll(() => lasting.close())

  test('SIGHUP ends no gateway with two workers that has no terminal', async () => {
    for (const pid of [program.child.pid!, ...children().workers]) process.kill(pid, 'SIGHUP')
    await expect.poll(() => program.said()).toContain('SIGHUP')
    expect((await fetch(`${program.url}/a`)).status).toBe(200)
    expect(program.child.exitCode).toBe(null)
  })

  test('the end of a worker or of the counting process is reported with its reason', async () => {
    const { workers, counting } = children()
    process.kill(workers[0]!, 'SIGKILL')
    process.kill(counting[0]!, 'SIGABRT')
    await expect.poll(program.said).toContain(`worker ${workers[0]} ended (SIGKILL) and is started again`)
    await expect
      .poll(program.said)
      .toContain(`the counting process ${counting[0]} ended (SIGABRT) and is started again`)
  })

  test('a gateway whose workers are all dead is not ready', async () => {
    await expect.poll(program.said, { timeout: 20_000, interval: 10 }).toContain('Dashboard: ')
    const admin = /Dashboard: (\S+)/.exec(program.said())![1]!
    const ready = (): Promise<number> => fetch(`${admin}/readyz`).then(({ status }) => status)
    await expect.poll(ready, { timeout: 30_000 }).toBe(200)
    const seen = new Set<number>()
    // until both are gone at one moment: they are started again within milliseconds
    await expect
      .poll(
        async () => {
          for (const pid of children().workers) process.kill(pid, 'SIGKILL')
          seen.add(await ready())
          return [...seen]
        },
        { timeout: 20_000, interval: 10 },
      )
      .toContain(503)
    await expect.poll(ready, { timeout: 30_000 }).toBe(200)
  })

  test('a gateway that is stopped while a worker restarts still ends', async () => {
    await expect.poll(() => children().workers.length, { timeout: 20_000, interval: 10 }).toBe(2)
    const { workers } = children()
    process.kill(workers[0]!, 'SIGKILL')
    await expect
      .poll(() => children().workers.some(pid => !workers.includes(pid)), { timeout: 20_000, interval: 5 })
      .toBe(true)
    const begun = performance.now()
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
    expect(performance.now() - begun).toBeLessThan(15_000)
  })
})

test('SIGHUP ends no gateway with one worker that has no terminal', async () => {
  const { url } = await hesitant()
  const program = await start({ routes: [{ to: url }] })
  program.child.kill('SIGHUP')
  await expect.poll(() => program.said()).toContain('SIGHUP')
  expect((await fetch(`${program.url}/a`)).status).toBe(200)
  expect(program.child.exitCode).toBe(null)
})

describe('the path of health checks', () => {
  test('the path of health checks is answered on the traffic port, uncounted, without a Host, and in one spelling only', async () => {
    const { url: to, received } = await rig.serve()
    const rules = [{ id: 'all', limit: '1/h' }]
    const { port, url } = await rig.guard({ rules, gateway: { healthPath: '/up', routes: [{ to }] } })
    const raw = (line: string): Promise<string> => sendRaw(port, `${line}\r\nConnection: close\r\n\r\n`)
    for (const line of ['OPTIONS /up HTTP/1.0', 'GET /up HTTP/1.0', 'HEAD /up HTTP/1.1\r\nHost: check']) {
      expect([line, statusesIn(await raw(line))]).toEqual([line, [200]])
    }
    expect(received).toEqual([])
    const others = ['/up?a', '/up/', '/%75p', '/UP', '//up']
    for (const other of others) await sendRaw(port, `GET ${other} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
    expect(await fetch(`${url}/x`).then(({ status }) => status)).not.toBe(200)
  })

  test('health checks of the admin port are answered under any host name, and nothing else is', async () => {
    const { url } = await hesitant()
    const program = await start({ routes: [{ to: url }], admin: { port: 0 } })
    await expect.poll(program.said, { timeout: 10_000 }).toContain('Dashboard: ')
    const admin = new URL(/Dashboard: (\S+)/.exec(program.said())![1]!)
    const status = async (line: string): Promise<number[]> =>
      statusesIn(await sendRaw(Number(admin.port), `${line}\r\nConnection: close\r\n\r\n`))
    for (const path of ['/healthz', '/readyz']) {
      expect(await status(`GET ${path} HTTP/1.1\r\nHost: diana.prod.svc`)).toEqual([200])
      expect(await status(`GET ${path} HTTP/1.0`)).toEqual([200])
    }
    // what HAProxy sends for `option httpchk` with a path and without one
    for (const path of ['/healthz', '/readyz', '/']) expect(await status(`OPTIONS ${path} HTTP/1.0`)).toEqual([200])
    for (const path of ['/metrics', '/api/v1/document', '/']) {
      expect([path, await status(`GET ${path} HTTP/1.1\r\nHost: diana.prod.svc`)]).toEqual([path, [403]])
    }
  })
})
