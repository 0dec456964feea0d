import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { apiKey } from './plan/requests.mjs'
import { hmacSecret } from './sign.mjs'
import { targets } from './targets.mjs'

export { buildPackages as build } from '../helpers/command.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const probe = fileURLToPath(new URL('probe.mjs', import.meta.url))
const startMs = 60_000

/** The most calls that may hold a slot of the rule `held`, which every call meets. */
export const slots = 1_000_000

const rules = [
  { id: 'held', algorithm: 'concurrency', limit: slots },
  { id: 'limited', match: { path: '/limited/**' }, by: 'ip', limit: '3/s' },
  { id: 'login', match: { path: '/login/**' }, by: 'ip', limit: '5/h', countWhen: 'failed', resetWhen: 'success' },
  {
    id: 'queued',
    match: { path: '/queued/**' },
    limit: '20/s',
    algorithm: 'sliding-window',
    whenFull: 'wait',
    queue: { size: 20, timeout: '400ms' },
  },
  {
    id: 'slots',
    match: { path: '/slots/**' },
    algorithm: 'concurrency',
    limit: 2,
    whenFull: 'wait',
    queue: { size: 10, timeout: '400ms' },
  },
]

const filters = {
  none: [],
  'api-key': [{ use: 'api-key', keys: [{ name: 'fuzz', sha256: createHash('sha256').update(apiKey).digest('hex') }] }],
  own: [{ use: './own.mjs' }],
  faulty: [{ use: './faulty.mjs' }],
  hmac: [{ use: 'hmac-signature', secrets: { fuzz: hmacSecret } }],
}

const ownFilter = `export default async app => {
  app.addHook('onSend', async (request, reply, payload) => {
    reply.header('x-own', String(reply.statusCode))
    return payload
  })
}
`

/** Ends the process at the tenth call: a fault for the fuzzer to find. */
const faultyFilter = `let calls = 0
export default async app => {
  app.addHook('onRequest', async () => {
    if (++calls === 10) setImmediate(() => { throw new Error('a planted fault') })
  })
}
`

/** A gateway with a fault, to see that the fuzzer finds it; used only if it is named. */
export const faulty = { workers: 1, filter: 'faulty' }

/** Every way in which the gateway is fuzzed. */
export const configurations = [
  ...[1, 2].flatMap(workers => ['none', 'api-key', 'own'].map(filter => ({ workers, filter }))),
  { workers: 1, filter: 'none', isTls: true },
  ...Object.keys(targets).map(target => ({ workers: 1, filter: 'none', target })),
]

const short = { connect: '500ms', headers: '500ms', body: '500ms' }

/** Settings under which everything that a round begins is over soon. */
export const impatient = {
  connections: { max: 64, queue: { timeout: '1s' } },
  limits: { body: '10MiB', time: '3s', grace: '2s' },
  timeouts: short,
}

/** A gateway in processes of its own, in front of the two services. */
export async function startGateway({ workers, filter, isTls = false }, { hostile, good }, settings) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-fuzz-'))
  const probes = join(folder, 'probes')
  mkdirSync(probes)
  writeFileSync(join(folder, 'own.mjs'), ownFilter)
  writeFileSync(join(folder, 'faulty.mjs'), faultyFilter)
  const gateway = {
    admin: { port: 0 },
    filters: filters[filter],
    routes: [
      {
        path: '/good',
        to: good,
        connections: { max: 1024, queue: { timeout: '10s' } },
        timeouts: { connect: '5s', headers: '60s', body: '60s' },
      },
      { path: '/nowhere', to: 'http://127.0.0.1:9' },
      { to: hostile, health: { failures: 1000, rest: '1ms' } },
    ],
    ...(isTls ? { tls: certify(folder) } : {}),
    ...settings,
  }
  const config = join(folder, 'diana.json')
  writeFileSync(config, JSON.stringify({ rules, gateway }))
  const program = join(root, 'packages/gateway/bin/diana.mjs')
  const args = [program, 'start', '--config', config, '--port', '0', '--workers', String(workers)]
  const env = { ...process.env, NODE_OPTIONS: `--expose-gc --import ${probe}`, FUZZ_PROBES: probes }
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const started = new GatewayProcess(child, { folder, probes, isTls })
  await started.begin()
  return started
}

/** `diana serve` in a process of its own, with all its ports. */
export async function startServe({ workers }) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-fuzz-'))
  const probes = join(folder, 'probes')
  mkdirSync(probes)
  const config = join(folder, 'diana.json')
  const serve = { admin: { port: 0 }, spoe: { port: 0 }, redis: { port: 0 } }
  writeFileSync(config, JSON.stringify({ rules, trustProxy: ['127.0.0.0/8'], serve }))
  const program = join(root, 'packages/gateway/bin/diana.mjs')
  const ports = ['--port', '0', '--grpc-port', '0', '--workers', String(workers)]
  const env = { ...process.env, NODE_OPTIONS: `--expose-gc --import ${probe}`, FUZZ_PROBES: probes }
  const child = spawn(process.execPath, [program, 'serve', '--config', config, ...ports], {
    ...{ env, stdio: ['ignore', 'pipe', 'pipe'] },
  })
  const started = new GatewayProcess(child, { folder, probes, isTls: false })
  await started.begin()
  return started
}

/** A certificate of its own, which callers do not check. */
function certify(folder) {
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'key.pem']
  const args = ['req', '-x509', ...key, '-out', 'cert.pem', '-days', '2', '-subj', '/CN=localhost']
  execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  return { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
}

class GatewayProcess {
  output = ''
  #child
  #places
  pids = []
  #end = () => this.#child.kill('SIGKILL')
  port = 0
  url = ''
  admin = ''
  isTls

  constructor(child, places) {
    this.#child = child
    this.#places = places
    this.isTls = places.isTls
    process.once('exit', this.#end)
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', piece => {
        this.output += piece
      })
    }
  }

  async begin() {
    const until = performance.now() + startMs
    while (!this.output.includes('Dashboard: ')) {
      if (this.hasEnded || performance.now() > until) throw new Error(`the gateway did not start: ${this.output}`)
      await pause(50)
    }
    this.admin = /Dashboard: (\S+)/.exec(this.output)[1]
    this.url = /https?:\/\/[\d.]+:\d+/.exec(this.output)[0]
    this.port = Number(new URL(this.url).port)
    this.grpc = /grpc on ([\d.:]+)/.exec(this.output)?.[1]
    this.spoe = /spoe on ([\d.:]+)/.exec(this.output)?.[1]
    this.redis = /redis on ([\d.:]+)/.exec(this.output)?.[1]
    this.pids = this.#running()
  }

  get hasEnded() {
    return this.#child.exitCode !== null || this.#child.signalCode !== null
  }

  /** Processes that were there at the start and are not any more. */
  get lost() {
    const running = this.#running()
    return this.pids.filter(pid => !running.includes(pid))
  }

  #running() {
    if (this.hasEnded) return []
    const { pid } = this.#child
    try {
      return [
        pid,
        ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean).map(Number),
      ]
    } catch {
      return []
    }
  }

  /** Memory of each process, after a garbage collection. */
  async memory() {
    const asked = readdirSync(this.#places.probes).map(async name => {
      const socket = connect(join(this.#places.probes, name))
      const answer = await text(socket).catch(() => '')
      return answer === '' ? undefined : JSON.parse(answer)
    })
    return (await Promise.all(asked)).filter(one => one !== undefined)
  }

  /** The most memory that one of its processes holds now, without a garbage collection. */
  get residentBytes() {
    const sizes = this.#running().map(pid => {
      try {
        return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024
      } catch {
        return 0
      }
    })
    return Math.max(0, ...sizes)
  }

  async close() {
    this.#child.kill('SIGTERM')
    const late = setTimeout(this.#end, 3000)
    if (!this.hasEnded) await once(this.#child, 'close')
    clearTimeout(late)
    process.off('exit', this.#end)
    rmSync(this.#places.folder, { recursive: true, force: true })
  }
}
