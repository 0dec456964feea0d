import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from '@test/program-rig'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../helpers/free-port.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = readFileSync(join(root, 'docs/filters.md'), 'utf8')
const programs = {
  bun: programIn('@oven/bun-linux-x64/bin', '@oven/bun-linux-aarch64/bin', '@oven/bun-darwin-aarch64/bin'),
  deno: programIn('@deno/linux-x64-glibc', '@deno/linux-arm64-glibc', '@deno/darwin-arm64'),
  workerd: programIn(
    ...[
      '@cloudflare/workerd-linux-64/bin',
      '@cloudflare/workerd-linux-arm64/bin',
      '@cloudflare/workerd-darwin-arm64/bin',
    ],
  ),
}
const children: ChildProcess[] = []
let folder: string

beforeAll(() => {
  build()
  folder = mkdtempSync(join(tmpdir(), 'diana-runtimes-'))
  mkdirSync(join(folder, 'node_modules'))
  for (const name of ['diana-limiter', 'hono']) {
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module", "dependencies": { "diana-limiter": "*" } }')
  cpSync(join(root, 'test/docs/fetch/server.mjs'), join(folder, 'server.js'))
})

afterAll(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    child.kill('SIGKILL')
    await once(child, 'close')
  }
  rmSync(folder, { recursive: true })
})

/** The folder of a program in one of these packages; undefined on a platform that has none of them. */
function programIn(...folders: string[]): string | undefined {
  return folders.map(name => join(root, 'test/runtimes/node_modules', name)).find(path => existsSync(path))
}

/** Starts a command in the folder of the test, and returns what it has printed so far. */
function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): () => string {
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', piece => (text += piece))
  return () => text
}

/** The statuses of calls one after the other; the first one is sent again until the server listens. */
async function statuses(
  port: number,
  count: number,
  said: () => string,
  headers: Record<string, string> = {},
): Promise<number[]> {
  const call = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/hello`, { headers })
    await answer.arrayBuffer()
    return answer.status
  }
  const first = await vi.waitFor(call, { timeout: 20_000, interval: 50 }).catch(({ message }: Error) => {
    throw new Error(`${message}: ${said()}`)
  })
  const all = [first]
  while (all.length < count) all.push(await call())
  return all
}

const limited = [200, 200, ...Array.from({ length: 10 }, () => 503)]

describe('the documented commands', () => {
  // nothing but the port is added: without permissions that the page does not name, Deno reads no files
  it.runIf(programs.bun && programs.deno).each([
    ['bun', 'bun server.js', (port: number) => `PORT=${port} exec bun server.js`],
    ['deno', 'deno serve server.js', (port: number) => `exec deno serve --host 127.0.0.1 --port ${port} server.js`],
  ] as const)('%s: the third of 12 calls at 2/m is refused', async (name, documented, commandOn) => {
    expect(page).toContain(`\`${documented}\``)
    const port = await freePort()
    const path = [programs[name], process.env.PATH].join(delimiter)
    const said = start('/bin/sh', ['-c', commandOn(port)], { PATH: path, NO_COLOR: '1' })
    expect(await statuses(port, 12, said)).toEqual(limited)
  })
})

describe('workerd', () => {
  const sources = {
    'the documented worker': readFileSync(join(root, 'test/docs/fetch/worker.mjs'), 'utf8'),
    'a limiter at the top level': `
      import { createLimiter } from 'diana-limiter'
      import { diana } from 'diana-limiter/fetch'
      const limiter = await createLimiter({ rules: [{ id: 'all', limit: '2/m' }] })
      const limit = diana(limiter, { peer: () => '203.0.113.1' })
      export default { fetch: limit.wrap(() => new Response('hello')) }`,
    'a limiter of the first request': `
      import { createLimiter } from 'diana-limiter'
      let limiter
      export default { async fetch() {
        limiter ??= createLimiter({ rules: [{ id: 'all', limit: '2/m', algorithm: 'token-bucket' }] })
        const { allowed } = await (await limiter).check({ method: 'GET', path: '/' })
        return new Response('', { status: allowed ? 200 : 503 })
      } }`,
    'one line in Hono': `
      import { Hono } from 'hono'
      import { rateLimit } from 'diana-limiter/hono'
      const app = new Hono()
      app.use(rateLimit({ limit: '2/m', peer: context => context.req.header('cf-connecting-ip') }))
      app.get('/hello', context => context.text('hello'))
      export default app`,
    'a long key, which is hashed': `
      import { rateLimit } from 'diana-limiter/fetch'
      const limit = rateLimit({ limit: '2/m', by: 'header:x-api-key' })
      export default { fetch: limit.wrap(() => new Response('hello')) }`,
  }
  const dates = [
    /from `?(\d{4}-\d\d-\d\d)`? on/.exec(page)?.[1] ?? 'none in docs/filters.md',
    '2026-01-01',
    '2026-11-01',
  ]
  const variants = Object.keys(sources).flatMap(name => dates.map(date => [name, date] as const))
  const ports: number[] = []
  let said: () => string

  beforeAll(async () => {
    if (programs.workerd === undefined) return
    for (const [at, source] of Object.values(sources).entries()) {
      writeFileSync(join(folder, `worker-${at}.js`), source)
      const bundle = await rolldown({
        input: join(folder, `worker-${at}.js`),
        ...{ platform: 'neutral', external: [/^node:/, 'ioredis'], logLevel: 'silent' },
        resolve: { conditionNames: ['workerd', 'worker', 'import', 'default'], mainFields: ['module', 'main'] },
      })
      await bundle.write({ file: join(folder, `bundle-${at}.js`), format: 'esm', codeSplitting: false })
    }
    const workers = variants.map(([name, date], at) => {
      const bundle = `bundle-${Object.keys(sources).indexOf(name)}.js`
      return `(name = "w${at}", worker = (modules = [(name = "w", esModule = embed "${bundle}")],
        compatibilityDate = "${date}", compatibilityFlags = ["nodejs_compat"]))`
    })
    const sockets = variants.map((_, at) => `(name = "s${at}", http = (), service = "w${at}")`)
    writeFileSync(
      join(folder, 'workers.capnp'),
      `using Workerd = import "/workerd/workerd.capnp";
      const config :Workerd.Config = (services = [${workers}], sockets = [${sockets}]);`,
    )
    for (const _ of variants) ports.push(await freePort())
    const addresses = ports.map((port, at) => `--socket-addr=s${at}=127.0.0.1:${port}`)
    said = start(join(programs.workerd, 'workerd'), ['serve', 'workers.capnp', ...addresses])
  })

  it.runIf(programs.workerd).each(variants)('%s of %s refuses the third of 12 calls at 2/m', async (...variant) => {
    const at = variants.findIndex(([name, date]) => name === variant[0] && date === variant[1])
    const headers = { 'cf-connecting-ip': '203.0.113.1', 'x-api-key': 'k'.repeat(300) }
    expect(await statuses(ports[at]!, 12, said, headers)).toEqual(limited)
  })
})
