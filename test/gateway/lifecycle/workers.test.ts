import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { request } from 'undici'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { call, load } from '../../helpers/load.ts'
import { build, childrenOf, startDiana, startProgram } from '../../helpers/program-rig.ts'
import { startRedis } from '../../helpers/servers/redis-server.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

// several processes on a machine that may have other work
const patient = { timeout: 30_000 }

const rig = new GatewayRig()

beforeAll(build)
afterEach(() => rig.close())

const start = (document: object, ...args: readonly string[]) => startProgram(rig, document, args)

const wrkConnections = 16

/** How many calls were refused. */
async function wrk(url: string, seconds: number): Promise<number> {
  const { stdout } = await promisify(execFile)('wrk', ['-t1', `-c${wrkConnections}`, `-d${seconds}s`, url])
  return Number(/Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? 0)
}

const sum = (outcomes: ReadonlyMap<string, number>, ...names: string[]): number =>
  names.reduce((total, name) => total + (outcomes.get(name) ?? 0), 0)

/** All but calls that were answered, and connections that nobody had accepted when the last one stopped listening. */
async function failuresOf(outcomes: Promise<ReadonlyMap<string, number>>): Promise<string[]> {
  return [...(await outcomes).keys()].filter(outcome => !['200', 'ECONNREFUSED', 'never accepted'].includes(outcome))
}

describe('workers', () => {
  test('workers admit exactly the limit together, under wrk', async () => {
    const { url, received } = await rig.serve()
    const rules = [
      { id: 'all', limit: '2000/h' },
      { id: 'each', by: 'ip', limit: '100000/h', algorithm: 'token-bucket' },
    ]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    let [refused, rounds] = [0, 0]
    for (; rounds < 20 && refused < 100; rounds++) refused += await wrk(program.url, 1)
    expect(refused).toBeGreaterThanOrEqual(100)
    expect(received.length).toBeLessThanOrEqual(2000)
    // calls that wrk leaves behind at the end of a round may have been counted and not sent
    expect(received.length).toBeGreaterThanOrEqual(2000 - wrkConnections * (rounds - 1))
    expect(program.said()).not.toContain('by themselves')
  })

  describe('with an admin port', () => {
    const lasting = new GatewayRig()
    let program: Awaited<ReturnType<typeof startProgram>>
    let to: string[]
    const admin = async () => {
      await expect.poll(program.said, patient).toContain('Dashboard: ')
      return /Dashboard: (\S+)/.exec(program.said())![1]!
    }
    beforeAll(async () => {
      const names = ['a', 'b', 'c']
      const services = await Promise.all(names.map(name => lasting.serve((_, response) => response.end(name))))
      to = services.map(({ url }) => url)
      const rules = [{ id: 'counted', match: { path: '/counted' }, limit: '40/h' }]
      const gateway = { routes: [{ to, sticky: { cookie: 'route' } }], admin: { port: 0 } }
      program = await startProgram(lasting, { rules, gateway }, ['--workers', '2'])
    })
    afterAll(() => lasting.close())

    test('workers accept the sticky cookies of each other, and report the addresses of services together', async () => {
      const ask = async (cookie: string) => {
        // a new connection each time, so that both workers are asked
        const { headers, body } = await request(program.url, { headers: { cookie }, reset: true })
        return { text: await body.text(), cookie: String(headers['set-cookie'] ?? '') }
      }
      const first = await ask('')
      const answers = await Promise.all(Array.from({ length: 30 }, () => ask(first.cookie.split(';')[0]!)))
      expect(new Set(answers.map(({ text, cookie }) => `${text}${cookie}`))).toEqual(new Set([first.text]))
      const { body } = await request(`${await admin()}/api/v1/upstreams`)
      const { routes } = (await body.json()) as { routes: { addresses: object[] }[] }
      expect(routes[0]!.addresses).toEqual(
        to.map(address => expect.objectContaining({ address, state: 'healthy', weight: 1, share: 1, underWay: 0 })),
      )
    })

    test('the admin API adds up the calls of workers at each address, and reports each worker by itself', async () => {
      const read = async <Answer>(path: string) => (await fetch(`${await admin()}/api/v1/${path}`)).json() as Answer
      type Services = { routes: { figures?: { calls: number; errors: number }; addresses: object[] }[] }
      type Processes = { processes: { pid: number; callers: object }[] }
      // what calls did before a worker was first asked is not known
      await expect.poll(async () => (await read<Processes>('processes')).processes.length, patient).toBe(2)
      const figures = async () => (await read<Services>('services')).routes[0]?.figures
      await Promise.all(Array.from({ length: 40 }, () => call(`${program.url}/free`)))
      await expect.poll(async () => (await figures())?.calls ?? 0, patient).toBeGreaterThanOrEqual(40)
      // with those of the test before, if they were in the last minute
      expect((await figures())!.calls).toBeLessThanOrEqual(71)
      expect(await figures()).toMatchObject({ errors: 0, retries: 0, latency: { p50Ms: expect.any(Number) } })
      const { processes } = await read<Processes>('processes')
      expect(processes.map(({ pid }) => pid).sort()).toEqual(childrenOf(program.child.pid!).workers.sort())
      // a process reports once a second, so that its last report may be of a moment at which the calls above were under way
      const idle = { callers: { connections: expect.any(Number), inProgress: 0, rejected: {} } }
      await expect
        .poll(async () => (await read<Processes>('processes')).processes, patient)
        .toEqual([expect.objectContaining(idle), expect.objectContaining(idle)])
    })

    test('the metrics of workers are those of one gateway', async () => {
      // each on a connection of its own, so that both workers get some
      const outcomes = await Promise.all(Array.from({ length: 60 }, () => call(`${program.url}/counted`)))
      expect(outcomes.filter(outcome => outcome === '200')).toHaveLength(40)
      const decisions = async () => {
        const text = await (await fetch(`${await admin()}/metrics`)).text()
        return text.split('\n').filter(line => line.startsWith('diana_requests_total'))
      }
      await expect
        .poll(decisions, patient)
        .toEqual([
          'diana_requests_total{rule="counted",decision="allow"} 40',
          'diana_requests_total{rule="counted",decision="deny"} 20',
        ])
    })
  })

  test('a killed worker loses only its open calls, and no count', async () => {
    const { url, received } = await rig.serve()
    const rules = [{ id: 'all', limit: '3000/h' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const connections = 8
    const begunAt = performance.now()
    const { stop, outcomes } = load(program.url, connections)
    await expect.poll(() => sum(outcomes, '200'), patient).toBeGreaterThan(300)
    const perMs = received.length / (performance.now() - begunAt)
    const [victim, other] = childrenOf(program.child.pid!).workers
    process.kill(victim!, 'SIGKILL')
    await expect.poll(() => sum(outcomes, '503'), patient).toBeGreaterThan(50)
    const { workers } = childrenOf(program.child.pid!)
    await stop()
    expect(workers).toContain(other)
    const failed = [...outcomes.keys()].filter(outcome => outcome !== '200' && outcome !== '503')
    expect(sum(outcomes, ...failed)).toBeLessThanOrEqual(connections)
    // a call of the dead worker may have been counted and not sent, never sent and not counted; and permits that it held for the next
    // 200 ms, or for 40 calls, count as used (docs/gateway.md)
    const held = 2 * Math.max(20, Math.ceil(100 * perMs))
    expect(received.length).toBeLessThanOrEqual(3000)
    expect(received.length).toBeGreaterThanOrEqual(3000 - connections - held)
  })

  test('the concurrency slots of a killed worker are released', async () => {
    const pending: ServerResponse[] = []
    const { url } = await rig.serve((_request, response) => pending.push(response))
    const rules = [{ id: 'places', limit: 4, algorithm: 'concurrency' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } }, '--workers', '2')
    const held = Array.from({ length: 4 }, () => call(program.url))
    await expect.poll(() => pending.length, patient).toBe(4)
    expect(await call(program.url)).toBe('503')
    const dead: string[] = []
    for (const one of held) one.then(outcome => dead.push(outcome))
    // which worker has them is the system's choice
    for (const worker of childrenOf(program.child.pid!).workers) {
      process.kill(worker, 'SIGKILL')
      for (let i = 0; i < 100 && dead.length === 0; i++) await pause(20)
      if (dead.length > 0) break
    }
    expect(dead.length).toBeGreaterThan(0)
    expect(new Set(dead)).toEqual(new Set(['ECONNRESET']))
    // the callers may notice the end before the processes do that count and that pass connections on
    const callAgain = async (): Promise<string> => {
      const until = performance.now() + patient.timeout
      for (;;) {
        const outcome = await call(program.url)
        if (outcome === '200' || performance.now() > until) return outcome
        await pause(10)
      }
    }
    const again = Array.from({ length: dead.length }, callAgain)
    await expect.poll(() => pending.length, patient).toBe(4 + again.length)
    expect(await call(program.url)).toBe('503')
    for (const response of pending) response.end()
    expect(new Set(await Promise.all(again))).toEqual(new Set(['200']))
  })

  describe('under load', () => {
    const lasting = new GatewayRig()
    let program: Awaited<ReturnType<typeof startProgram>>
    beforeAll(async () => {
      const { url } = await lasting.serve((_request, response) => setTimeout(() => response.end('served'), 20))
      const rules = [{ id: 'all', limit: '1000000/h' }]
      program = await startProgram(lasting, { rules, gateway: { routes: [{ to: url }] } }, ['--workers', '2'])
    })
    afterAll(() => lasting.close())

    test('workers continue while the counting process is down, and count together again', async () => {
      const { stop, outcomes } = load(program.url, 8)
      await expect.poll(() => sum(outcomes, '200'), patient).toBeGreaterThan(200)
      process.kill(childrenOf(program.child.pid!).counting[0]!, 'SIGKILL')
      await expect.poll(program.said, patient).toContain('count by themselves')
      await expect.poll(program.said, patient).toContain('count together again')
      expect([...(await stop()).keys()]).toEqual(['200'])
    })

    test('workers finish open calls when they are stopped', async () => {
      const { stop, outcomes } = load(program.url, 16)
      await expect.poll(() => sum(outcomes, '200'), patient).toBeGreaterThan(100)
      program.child.kill('SIGTERM')
      expect(await program.ended).toBe(0)
      expect(await failuresOf(stop())).toEqual([])
    })
  })

  test('the command says which worker it waits for', async () => {
    const folder = rig.folder()
    const slow = join(folder, 'slow.mjs')
    writeFileSync(
      slow,
      "import cluster from 'node:cluster'\nif (cluster.worker?.id === 2) await new Promise(done => setTimeout(done, 2500))",
    )
    const env = { NODE_OPTIONS: `--import ${slow}` }
    const program = await startProgram(
      rig,
      { gateway: { routes: [{ answer: { body: 'ok' } }] } },
      ['--workers', '2'],
      env,
    )
    expect(program.said()).toContain('Diana waits for worker 2 of 2, which has not started within 2 s.')
  })

  test('workers are not started with invalid rules', async () => {
    const config = join(rig.folder(), 'diana.yaml')
    writeFileSync(config, 'rules: [{ id: all, limit: 5/x }]')
    await expect(startDiana(['--config', config, '--workers', '2'])).rejects.toThrow(/5\/x/)
  })
})

describe('one process', () => {
  test('a single process finishes open calls when it is stopped', async () => {
    const { url } = await rig.serve((_request, response) => setTimeout(() => response.end('served'), 20))
    const rules = [{ id: 'all', limit: '1000000/h' }]
    const program = await start({ rules, gateway: { routes: [{ to: url }] } })
    const { stop, outcomes } = load(program.url, 16)
    await expect.poll(() => sum(outcomes, '200'), patient).toBeGreaterThan(100)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
    expect(await failuresOf(stop())).toEqual([])
  })
})

describe('two gateways', () => {
  test('two gateways on one Redis share one limit', async () => {
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
    await expect.poll(() => loads.every(({ outcomes }) => sum(outcomes, '503') > 50), patient).toBe(true)
    for (const { stop } of loads) expect([...(await stop()).keys()].sort()).toEqual(['200', '503'])
    expect(received).toHaveLength(500)
  })
})
