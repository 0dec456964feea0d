import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { run } from '../../packages/gateway/src/cli/run.ts'
import { type EtcdServer, startEtcd } from '../helpers/servers/etcd-server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const main = join(root, 'packages/gateway/dist/cli/main.js')
const scratch = mkdtempSync(join(tmpdir(), 'diana-admin-'))
const token = 'a-token-that-is-long-enough'

let service: Server
let upstream: string
let etcd: EtcdServer
beforeAll(async () => {
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'], { cwd: root, stdio: 'pipe' })
  service = createServer((_request, response) => response.end('served')).listen(0, '127.0.0.1')
  await once(service, 'listening')
  upstream = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  etcd = await startEtcd()
})
afterAll(async () => {
  service.closeAllConnections()
  service.close()
  await etcd.close()
  rmSync(scratch, { recursive: true })
})

const children = new Set<ChildProcess>()
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
})

interface Gateway {
  readonly address: string
  readonly admin: string
  out(): string
  stop(): Promise<void>
}

async function launch(config: string, env: Readonly<Record<string, string>> = {}): Promise<Gateway> {
  const args = [main, 'start', '--config', config, '--upstream', upstream, '--port', '0', '--admin-port', '0']
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } })
  children.add(child)
  let out = ''
  child.stdout.setEncoding('utf8').on('data', text => {
    out += text
  })
  await vi.waitFor(() => expect(out).toContain('Dashboard: '), { timeout: 30_000, interval: 10 })
  return {
    address: /listens on (\S+)/.exec(out)![1]!,
    admin: /Dashboard: (\S+)/.exec(out)![1]!,
    out: () => out,
    async stop() {
      child.kill('SIGTERM')
      await once(child, 'exit')
      children.delete(child)
    },
  }
}

function file(name: string, text: string): string {
  const path = join(scratch, name)
  writeFileSync(path, text)
  return path
}

async function statuses(address: string, count: number, account = 'ann'): Promise<number[]> {
  const answers: number[] = []
  for (let i = 0; i < count; i++) answers.push((await fetch(address, { headers: { 'x-account': account } })).status)
  return answers
}

async function ask<Answer>(url: string, init: RequestInit = {}): Promise<{ status: number; body: Answer }> {
  const headers = { ...(init.body ? { 'content-type': 'application/json' } : {}), ...init.headers }
  const response = await fetch(url, { ...init, headers })
  return { status: response.status, body: (await response.json()) as Answer }
}

const rules = `identify: { account: [header:x-account] }
rules:
  - id: whole   # everybody
    limit: 1000/m
  - id: each
    by: account
    limit: 3/m
`

async function top(args: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', '']
  const code = await run(['top', ...args], {
    input: (async function* () {})(),
    print: line => {
      out += `${line}\n`
    },
    printError: line => {
      err += `${line}\n`
    },
  })
  return { code, out, err }
}

describe('the answers of a running gateway', () => {
  test('every answer that is read without a question matches the OpenAPI document', async () => {
    const gateway = await launch(file('answers.yaml', rules))
    await statuses(gateway.address, 5)
    type Described = Record<string, { get?: { responses: { 200: { content: Record<string, { schema: object }> } } } }>
    const api = await ask<{ paths: Described }>(`${gateway.admin}/api/v1/openapi.json`)
    const read = Object.entries(api.body.paths).filter(([path, { get }]) => get && !/[{]|live$/.test(path))
    expect(read.map(([path]) => path)).toEqual(expect.arrayContaining(['/api/v1/services', '/api/v1/callers']))
    const services = () => ask<{ routes: { figures?: object }[] }>(`${gateway.admin}/api/v1/services`)
    await expect.poll(async () => (await services()).body.routes[0]?.figures).toBeDefined()
    const ajv = new Ajv2020({ strict: false })
    for (const [path, { get }] of read) {
      const { body } = await ask(gateway.admin + path)
      const validate = ajv.compile(get!.responses[200].content['application/json']!.schema)
      validate(body)
      expect([path, validate.errors]).toEqual([path, null])
    }
    await gateway.stop()
  })
})

describe('the statistics of a running gateway', () => {
  test('the statistics of a running gateway equal the calls made, in metrics, API and log, and promtool accepts the metrics', async () => {
    const gateway = await launch(file('figures.yaml', rules))
    const answers = [...(await statuses(gateway.address, 10)), ...(await statuses(gateway.address, 2, 'bob'))]
    const [allowed, refused] = [200, 503].map(status => answers.filter(one => one === status).length)
    expect([allowed, refused]).toEqual([5, 7])

    const metrics = await (await fetch(`${gateway.admin}/metrics`)).text()
    expect(metrics).toContain(`diana_calls_total{decision="allow"} ${allowed}`)
    expect(metrics).toContain(`diana_requests_total{rule="each",decision="deny"} ${refused}`)
    expect(metrics).not.toMatch(/\b(?:ann|bob)\b/)
    expect(execFileSync('promtool', ['check', 'metrics'], { input: metrics, encoding: 'utf8' })).toBe('')

    const callers = await ask<{ callers: object[] }>(`${gateway.admin}/api/v1/callers?unmask=true`)
    expect(callers.body.callers).toMatchObject([{ rule: 'each', key: 'account=ann', refused, error: 0 }])

    const series = async () => {
      const { body } = await ask<{ total: Record<string, number[]> }>(`${gateway.admin}/api/v1/figures?seconds=60`)
      return ['allowed', 'refused'].map(name => body.total[name]!.reduce((sum, one) => sum + one, 0))
    }
    await expect.poll(series, { timeout: 4000 }).toEqual([allowed, refused])

    const logged = gateway
      .out()
      .split('\n')
      .filter(line => line.startsWith('{'))
    expect(logged.length).toBeGreaterThan(0)
    expect(logged.map(line => JSON.parse(line))).toMatchObject([{ rule: 'each', msg: 'refused' }])
    expect(logged.join()).not.toContain('ann')
  })

  test('the statistics of a running gateway are shown by diana top, for people and for programs', async () => {
    const gateway = await launch(file('top.yaml', rules))
    const { port } = new URL(gateway.admin)
    let stop = false
    const calling = (async () => {
      while (!stop) await statuses(gateway.address, 5)
    })()
    await expect
      .poll(async () => (await top(['--admin-port', port, '--once'])).out, { timeout: 8000 })
      .toMatch(/each +0 +[1-9]\d* /)
    const { code, out } = await top(['--url', gateway.admin, '--once', '--json'])
    stop = true
    await calling
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({ total: { waiting: 0 }, rules: { each: { load: 1 } } })
  })
})

describe('diana top', () => {
  test('diana top reports a missing gateway or token in one sentence', async () => {
    const none = await top(['--admin-port', '1', '--once'])
    expect([none.code, none.out]).toEqual([1, ''])
    expect(none.err).toContain('cannot be reached')
    const gateway = await launch(file('token.yaml', rules), { DIANA_ADMIN_TOKEN: token })
    const locked = await top(['--url', gateway.admin, '--once'])
    expect(locked).toMatchObject({ code: 1, err: expect.stringContaining('DIANA_ADMIN_TOKEN') })
    process.env.DIANA_ADMIN_TOKEN = token
    expect((await top(['--url', gateway.admin, '--once'])).code).toBe(0)
    delete process.env.DIANA_ADMIN_TOKEN
  })

  test.each([[['--admin-port', 'x']], [['--url', 'x']], [['--url', 'http://a', '--admin-port', '1']], [['word']]])(
    'diana top refuses the arguments %j',
    async args => {
      expect((await top(args)).code).toBe(2)
    },
  )
})

describe('a long document', () => {
  const many = (count: number) =>
    `rules:\n${Array.from({ length: count }, (_, i) => `  - { id: rule-${i}, match: { path: /a/${i} }, by: ip, limit: 100/m }\n`).join('')}`
  const long = many(1000)
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await launch(file('long.yaml', rules))
    // it serves all tests of this group
    children.clear()
  })
  afterAll(() => gateway.stop())

  /** Sends the document while a caller calls: how long that took, how many calls were answered, and the longest of them. */
  async function sendBesideCalls(path: string, text: string) {
    const { body: stored } = await ask<{ version: string }>(`${gateway.admin}/api/v1/document`)
    let [asking, answered, longestMs] = [true, 0, 0]
    const calling = (async () => {
      while (asking) {
        const begun = performance.now()
        await (await fetch(gateway.address)).text()
        answered += 1
        longestMs = Math.max(longestMs, performance.now() - begun)
      }
    })()
    const begun = performance.now()
    const isWrite = path === '/document'
    const { status } = await ask(`${gateway.admin}/api/v1${path}`, {
      method: isWrite ? 'PUT' : 'POST',
      body: JSON.stringify({ text, ...(isWrite ? { version: stored.version } : {}) }),
    })
    const tookMs = performance.now() - begun
    asking = false
    await calling
    expect(status).toBe(200)
    // reading it takes long; what is left for the thread of the callers is a small part of that
    return { isSmooth: longestMs < Math.max(400, tookMs / 3) && answered > 10, longestMs, tookMs, answered }
  }

  test.each([
    ['checked', '/check', long],
    ['checked and full of mistakes', '/check', long.replaceAll('100/m', 'many')],
    ['written', '/document', long],
  ])('a long document that is %s delays no caller of the gateway', async (_, path, text) => {
    // a document that delays callers does so each time; a busy machine does so now and then
    const tries = [await sendBesideCalls(path, text)]
    while (tries.length < 3 && !tries.at(-1)!.isSmooth)
      tries.push(await sendBesideCalls(path, `${text}# ${tries.length}`))
    expect(tries.at(-1), JSON.stringify(tries)).toMatchObject({ isSmooth: true })
  })

  test('a document that is too long is refused at once', async () => {
    for (const [path, text] of [
      ['/check', 'x'.repeat(1_100_000)],
      ['/preview', ' '.repeat(1_900_000)],
      ['/check', many(30_000)],
    ]) {
      const { status } = await ask(`${gateway.admin}/api/v1${path}`, { method: 'POST', body: JSON.stringify({ text }) })
      expect([400, 413]).toContain(status)
    }
  })
})

describe('the name of the admin API', () => {
  test('the admin API answers under the names of gateway.admin.hosts, addresses and localhost', async () => {
    const gateway = await launch(file('hosts.yaml', `gateway: { admin: { hosts: [ops.example] } }\n${rules}`))
    const { port } = new URL(gateway.admin)
    const asked = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const options = { port, host: '127.0.0.1', path: '/api/v1/status', headers: { host } }
        get(options, response => resolve(response.resume().statusCode!)).on('error', reject)
      })
    expect(await asked(`ops.example:${port}`)).toBe(200)
    expect(await asked(`other.example:${port}`)).toBe(403)
  })
})

describe('a rule that is written', () => {
  interface Stored {
    readonly text: string
    readonly version: string
  }

  test('a rule written to the file is in force at the next call and after a restart', async () => {
    const config = file('written.yaml', rules)
    const first = await launch(config)
    const { body } = await ask<Stored>(`${first.admin}/api/v1/document`)
    const put = await ask(`${first.admin}/api/v1/rules/each`, {
      method: 'PUT',
      body: JSON.stringify({ where: 'local', text: 'id: each\nby: account\nlimit: 1/m', version: body.version }),
    })
    expect(put.status).toBe(200)
    expect(await statuses(first.address, 2)).toEqual([200, 503])
    expect(readFileSync(config, 'utf8')).toBe(rules.replace('3/m', '1/m'))
    await first.stop()
    const second = await launch(config)
    expect(await statuses(second.address, 2)).toEqual([200, 503])
  })

  test('a rule written to etcd is in force at the next call and after a restart, and the second of two writers gets a conflict', async () => {
    const config = file('etcd.yaml', `remote: { etcd: 'http://${etcd.authority}', key: /diana/admin }\n${rules}`)
    const first = await launch(config)
    const { body } = await ask<Stored>(`${first.admin}/api/v1/document?where=remote`)
    const write = (limit: string) =>
      ask<{ current?: Stored }>(`${first.admin}/api/v1/rules/each`, {
        method: 'PUT',
        body: JSON.stringify({
          where: 'remote',
          text: `id: each\nby: account\nlimit: ${limit}`,
          version: body.version,
        }),
      })
    expect((await write('1/m')).status).toBe(200)
    expect(await statuses(first.address, 2)).toEqual([200, 503])
    const second = await write('2/m')
    expect([second.status, second.body.current?.text]).toMatchObject([409, expect.stringContaining('1/m')])
    await first.stop()
    const again = await launch(config)
    expect(await statuses(again.address, 2)).toEqual([200, 503])
  })
})
