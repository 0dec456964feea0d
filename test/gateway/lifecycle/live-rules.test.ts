import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { randomRuns } from '@test/random-runs'
import { createLimiter, type Limiter, type SourceStatus } from 'diana-limiter'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../../../packages/gateway/src/cli/run.ts'
import { createGateway } from '../../../packages/gateway/src/gateway.ts'
import { startEtcd } from '../../helpers/servers/etcd-server.ts'
import { startRedis } from '../../helpers/servers/redis-server.ts'

interface ConfigCenter {
  /** The value of `remote` in a rule file. */
  readonly remote: Readonly<Record<string, string>>
  put(text: string): Promise<unknown>
  remove(): Promise<unknown>
  stop(signal?: NodeJS.Signals): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

const key = 'diana/rules'

const centers: Readonly<Record<string, () => Promise<ConfigCenter>>> = {
  async etcd() {
    const server = await startEtcd()
    const remote = { etcd: `http://${server.authority}`, key }
    return { ...server, remote, put: text => server.put(key, text), remove: () => server.remove(key) }
  },
  async redis() {
    const server = await startRedis()
    const { client } = server
    const notify = () => client.publish(`${key}:changed`, '')
    const remote = { redis: `redis://${server.authority}`, key }
    return {
      ...server,
      remote,
      put: async text => [await client.set(key, text), await notify()],
      remove: async () => [await client.del(key), await notify()],
    }
  },
}

const folder = mkdtempSync(join(tmpdir(), 'diana-live-rules-'))
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})
afterAll(() => {
  agent.destroy()
  rmSync(folder, { recursive: true })
})

interface Answer {
  readonly status: number
  /** The rule that refused. */
  readonly rule?: string | undefined
}

/** A gateway in front of a service, with local rules and those of a config center. */
async function startGateway(center: ConfigCenter, options: Readonly<Record<string, string>> = {}) {
  const service = createServer((_request, response) => response.end('served')).listen(0, '127.0.0.1')
  await once(service, 'listening')
  closing.push(async () => void service.close())
  const config = join(folder, 'diana.yaml')
  const local =
    'identify: { account: header:x-account-id }\nrules: [{ id: local, match: { path: /local }, limit: 1/10m }]'
  writeFileSync(config, `remote: ${JSON.stringify({ ...center.remote, ...options })}\n${local}`)
  const since = Date.now()
  const limiter = await createLimiter({ config })
  const startedMs = Date.now() - since
  closing.push(() => limiter.close())
  const upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  const gateway = await createGateway({ limiter, upstream })
  closing.push(() => gateway.close())
  const url = await gateway.listen({ port: 0, host: '127.0.0.1' })
  const remote = (): SourceStatus => limiter.status().sources[1]!
  return { limiter, startedMs, remote, ask: (path: string, account = '') => ask(`${url}${path}`, account) }
}

async function ask(url: string, account: string): Promise<Answer> {
  return await new Promise((resolve, reject) => {
    const calling = request(url, { agent, headers: { 'x-account-id': account } }, response => {
      let body = ''
      response.setEncoding('utf8').on('data', piece => {
        body += piece
      })
      response.on('error', reject).on('end', () => {
        const status = response.statusCode!
        resolve(status === 200 ? { status } : { status, rule: JSON.parse(body).rule })
      })
    })
    calling.on('error', reject).end()
  })
}

/** Waits until a condition is true, and returns how long that took. */
async function until(holds: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<number> {
  const since = performance.now()
  while (!(await holds())) {
    if (performance.now() - since > withinMs) throw new Error(`it does not hold after ${withinMs} ms`)
    await sleep(5)
  }
  return performance.now() - since
}

const gateRule = (limit: string): string => `rules: [{ id: gate, match: { path: /gate }, limit: ${limit} }]`
const open = gateRule('1000000/s')
const shut = gateRule('0/s')

describe.each(Object.entries(centers))('rules from a real %s', (_name, startCenter) => {
  let center: ConfigCenter
  beforeAll(async () => {
    center = await startCenter()
  }, 60_000)
  afterAll(() => center.close())

  test('a change in a config center is enforced within a second', async () => {
    await center.put(open)
    const { ask } = await startGateway(center)
    const statusOf = async () => (await ask('/gate')).status
    expect(await statusOf()).toBe(200)
    for (const [text, status] of [
      [shut, 503],
      [open, 200],
      [shut, 503],
      [open, 200],
    ] as const) {
      await center.put(text)
      expect(await until(async () => (await statusOf()) === status)).toBeLessThan(1000)
    }
  })

  test('many changes of rules under load fail no call and lose no count', { timeout: 600_000 }, async () => {
    // an odd number: the last change leaves the moving limits at their largest
    const changes = 1 + 2 * randomRuns(30)
    // in a year no token comes back while this runs
    const algorithms = [
      ['sliding-window', '10m'],
      ['sliding-log', '10m'],
      ['fixed-window, align: first-call', '10m'],
      ['token-bucket', '366d'],
    ]
    const paths = algorithms.flatMap((_, i) => [`/steady-${i}`, `/moving-${i}`])
    const documentOf = (change: number): string => {
      const steady = algorithms.map(([algorithm, period], i) => {
        return `  - { id: steady-${i}, match: { path: /steady-${i} }, limit: 50/${period}, algorithm: ${algorithm} }`
      })
      const moving = algorithms.map(([algorithm, period], i) => {
        const limit = `${change % 2 === 0 ? 30 : 42}/${period}`
        return `  - { id: moving-${i}, match: { path: /moving-${i} }, limit: ${limit}, algorithm: ${algorithm} }`
      })
      const unrelated = Array.from({ length: 1 + (change % 5) }, (_, i) => {
        return `  - { id: unrelated-${(change + i) % 7}, match: { path: /free/** }, limit: ${1e6 + change}/s }`
      })
      const account = '  - { id: account, match: { path: /account }, by: account, limit: [15/10m, 1000/s] }'
      const whole = `  - { id: whole, limit: 1000000/s, algorithm: ${change % 3 === 0 ? 'token-bucket' : 'fixed-window'} }`
      return ['rules:', ...steady, account, ...moving, ...unrelated, whole].join('\n')
    }
    await center.put(documentOf(0))
    const { limiter, ask } = await startGateway(center)
    const load = new Load(ask, [...paths, '/free/a'])
    const slowest = await changeMany(center, limiter, changes, documentOf)
    const { passed, failed, calls } = await load.stop()
    expect(failed).toEqual([])
    expect(slowest).toBeLessThan(1000)
    expect(calls).toBeGreaterThan(2 * changes)
    for (const path of paths) expect([path, passed[path]]).toEqual([path, path.startsWith('/steady') ? 50 : 42])
    expect(Object.entries(passed).filter(([call]) => call.startsWith('/account'))).toEqual(
      load.accounts.map(account => [`/account ${account}`, 15]),
    )
  })

  test.each([
    ['nothing', ''],
    ['no rules', 'rules: []'],
    ['nonsense', '<html>502 Bad Gateway</html>'],
    ['half a document', open.slice(0, 30)],
    ['the wrong types', 'rules: { gate: 5 }'],
    ['options that it may not set', `${open}\ntrustProxy: 5`],
    ['four megabytes and more', `${open} # ${'x'.repeat(5 * 1024 * 1024)}`],
    ['too many rules', `rules: [${'{ id: gate, limit: 1/s }, '.repeat(10_001)}]`],
    [
      'an alias bomb',
      `a: &a [${'x,'.repeat(99)}]\nb: &b [${'*a,'.repeat(99)}]\nc: &c [${'*b,'.repeat(99)}]\nrules: [${'*c,'.repeat(99)}]`,
    ],
  ])('rules of a config center that turn into %s leave the last good ones in force', async (_, text) => {
    await center.put(shut)
    const { ask, remote } = await startGateway(center)
    const { version } = remote()
    await center.put(text)
    await until(() => remote().trouble !== undefined)
    expect(await ask('/gate')).toEqual({ status: 503, rule: 'gate' })
    expect(remote()).toMatchObject({ version, taken: 1 })
    await center.put(open)
    await until(() => remote().taken === 2)
    expect([(await ask('/gate')).status, remote().trouble]).toEqual([200, undefined])
  })

  test('deleted rules of a config center leave the local rules to running and new processes', async () => {
    await center.put(shut)
    const running = await startGateway(center)
    expect(await running.ask('/gate')).toEqual({ status: 503, rule: 'gate' })
    await center.remove()
    await until(() => running.remote().trouble !== undefined)
    const starting = await startGateway(center)
    for (const { ask, remote } of [running, starting]) {
      expect([(await ask('/gate')).status, (await ask('/local')).status]).toEqual([200, 200])
      expect(await ask('/local')).toEqual({ status: 503, rule: 'local' })
      expect(remote().trouble).toContain('there is no document, so the local rules are in force')
    }
    await center.put(shut)
    for (const { ask } of [running, starting]) await until(async () => (await ask('/gate')).status === 503)
  })

  test('rules of a config center stay in force while it is down, and are followed again when it is back', async () => {
    await center.put(shut)
    const { ask, remote } = await startGateway(center)
    await center.stop('SIGKILL')
    await until(() => remote().trouble !== undefined)
    expect(await ask('/gate')).toEqual({ status: 503, rule: 'gate' })
    expect(remote()).toMatchObject({ taken: 1, rejected: 0 })
    await center.start()
    await center.put(open)
    await until(async () => (await ask('/gate')).status === 200)
    expect(remote()).toMatchObject({ taken: 2, trouble: undefined })
  })

  test('the start waits a bounded time for a config center, and applies its rules when they come', async () => {
    await center.put(shut)
    await center.stop()
    const { ask, remote, startedMs } = await startGateway(center)
    expect(startedMs).toBeLessThan(2000)
    expect([(await ask('/gate')).status, (await ask('/local')).status]).toEqual([200, 200])
    expect(await ask('/local')).toEqual({ status: 503, rule: 'local' })
    expect(remote()).toMatchObject({ taken: 0, trouble: expect.stringContaining('cannot be read') })
    await center.start()
    await until(async () => (await ask('/gate')).status === 503)
    expect(await ask('/local')).toEqual({ status: 503, rule: 'local' })
  })

  test('a start without the config center uses the rules of the snapshot', async () => {
    const snapshot = join(folder, `${Object.keys(center.remote)[0]}.snapshot`)
    await center.put(shut)
    const first = await startGateway(center, { snapshot })
    const { version } = first.remote()
    await first.limiter.close()
    expect(JSON.parse(readFileSync(snapshot, 'utf8'))).toMatchObject({ version, text: shut })
    await center.stop()
    const { ask, remote } = await startGateway(center, { snapshot })
    expect(await ask('/gate')).toEqual({ status: 503, rule: 'gate' })
    expect(remote()).toMatchObject({ fromSnapshot: true, version })
    await center.start()
    await until(() => !remote().fromSnapshot)
    expect(remote()).toMatchObject({ version, trouble: undefined })
    await center.put(open)
    await until(async () => (await ask('/gate')).status === 200)
  })
})

describe('diana start', () => {
  /** Runs the command in this process, and ends it as the system would. */
  async function start(remote: object, meanwhile: (heard: (line: RegExp) => Promise<unknown>) => Promise<unknown>) {
    const config = join(folder, 'start.yaml')
    writeFileSync(config, `remote: ${JSON.stringify(remote)}\n${open}`)
    const signals = ['SIGINT', 'SIGTERM'] as const
    const before = signals.map(signal => process.listeners(signal))
    let said = ''
    const say = (line: string): void => {
      said += `${line}\n`
    }
    const terminal = { input: (async function* () {})(), print: say, printError: say }
    const ended = run(['start', '--config', config, '--upstream', 'http://127.0.0.1:1', '--port', '0'], terminal)
    await until(() => /listens on/.test(said))
    await meanwhile(line => until(() => line.test(said)))
    process.emit('SIGTERM')
    expect(await ended).toBe(0)
    for (const [i, signal] of signals.entries()) {
      const added = process.listeners(signal).filter(listener => !before[i]!.includes(listener))
      for (const listener of added) process.removeListener(signal, listener)
    }
  }

  test('diana start reports problems from before it listened, and which rules are in force', async () => {
    const snapshot = join(folder, 'start.snapshot')
    const name = 'etcd http://127.0.0.1:1 rules'
    writeFileSync(snapshot, JSON.stringify({ source: name, version: '7', text: shut }))
    await start({ etcd: 'http://127.0.0.1:1', key: 'rules', snapshot }, async heard => {
      await heard(new RegExp(`uses the last known rules of ${name} \\(version 7\\)`))
      await heard(new RegExp(`starts without new rules from ${name}:\n${name}: cannot be read`))
    })
  })

  test('diana start reports changed rules and invalid rules', async () => {
    const rules = join(folder, 'remote.yaml')
    writeFileSync(rules, shut)
    await start({ file: rules }, async heard => {
      writeFileSync(rules, 'rules: []')
      await heard(/keeps its last good rules, since the new ones from file .* are not valid:\nfile .*:1:8: rules/)
      writeFileSync(rules, open)
      await heard(/applied new rules from file .*remote\.yaml \(version \w+\)/)
    })
  })
})

/** Changes the rules again and again, each once the one before is in force; returns the longest that one took. */
async function changeMany(
  center: ConfigCenter,
  limiter: Limiter,
  changes: number,
  documentOf: (change: number) => string,
): Promise<number> {
  let slowest = 0
  for (let change = 1; change <= changes; change++) {
    const taken = once(limiter.events, 'rules')
    await center.put(documentOf(change))
    const since = performance.now()
    await taken
    slowest = Math.max(slowest, performance.now() - since)
  }
  return slowest
}

/** Callers who call one after another until they are stopped, and then until they are refused. */
class Load {
  readonly accounts: readonly string[] = ['ann', 'bob', 'eve']
  readonly #ask: (path: string, account?: string) => Promise<Answer>
  readonly #passed: Record<string, number> = {}
  readonly #failed: unknown[] = []
  readonly #callers: Promise<void>[]
  #calls = 0
  #isOver = false

  constructor(ask: (path: string, account?: string) => Promise<Answer>, paths: readonly string[]) {
    this.#ask = ask
    const plain = paths.map(path => ({ path, account: '' }))
    const all = [...this.accounts.map(account => ({ path: '/account', account })), ...plain]
    this.#callers = all.map(async ({ path, account }) => {
      while (!this.#isOver) await this.#call(path, account)
      while (!path.startsWith('/free') && (await this.#call(path, account)));
    })
  }

  /** Whether the call passed. */
  async #call(path: string, account: string): Promise<boolean> {
    const name = account === '' ? path : `${path} ${account}`
    this.#calls++
    try {
      const { status, rule } = await this.#ask(path, account)
      if (status === 200) this.#passed[name] = (this.#passed[name] ?? 0) + 1
      // a refusal names the rule, and no rule refuses what is free
      else if (status !== 503 || rule === undefined || path.startsWith('/free'))
        this.#failed.push({ name, status, rule })
      return status === 200
    } catch (error) {
      this.#failed.push(error)
      return false
    }
  }

  async stop(): Promise<{ passed: Record<string, number>; failed: unknown[]; calls: number }> {
    this.#isOver = true
    await Promise.all(this.#callers)
    return { passed: this.#passed, failed: this.#failed, calls: this.#calls }
  }
}
