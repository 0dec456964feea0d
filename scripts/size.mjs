#!/usr/bin/env node
// npm run long -- size: what diana-limiter costs an application, on disk, at its start and in a bundle; --write puts it into docs/packages.md.
// Ends with exit code 1 if a figure misses its mark.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { Consumer, diskBytes, MOST_DISK_BYTES, runtimeLinks } from '../test/consumers/consumer.mjs'
import { built } from './build/build-packages.mjs'
import { packPackages, published } from './release/pack.mjs'
import { root, runNpm } from './run.mjs'

const STARTS = 15
const PEER = 'express-rate-limit'
const MOST_START_MS = 500
const page = join(root, 'docs/packages.md')
const tools = join(root, 'test/consumers')

// a request and its answer as Node makes them, without a connection
const request = `const { IncomingMessage, ServerResponse } = await import('node:http')
  const { Socket } = await import('node:net')
  const request = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/', originalUrl: '/', baseUrl: '' })
  Object.assign(request, { ip: '192.0.2.1', headers: { host: 'shop.test' }, app: { get: () => false, enabled: () => false } })
  Object.defineProperty(request.socket, 'remoteAddress', { value: '192.0.2.1' })
  const response = new ServerResponse(request)
  await new Promise((passed, failed) => limit(request, response, error => error ? failed(error) : passed()))
  if (response.getHeader('ratelimit') === undefined && response.getHeader('ratelimit-limit') === undefined) throw new Error('not limited')`

const call = "{ method: 'GET', path: '/', ip: '192.0.2.1' }"
const decided = options => `const { createLimiter } = await import('diana-limiter')
  limiter = await createLimiter(${options}); await limiter.check(${call})`
const imported = entry => ({ title: `\`import '${entry}'\``, program: `await import('${entry}')` })

/** Programs whose CPU time is measured, each in a process of its own; `most` is how many times that of the first one. */
const peer = {
  title: `\`${PEER}\`: \`rateLimit({ limit: 100 })\` and its first request`,
  program: `const { rateLimit } = await import('${PEER}')
    const limit = rateLimit({ limit: 100, standardHeaders: 'draft-7', validate: false }); ${request}`,
}
const firstRequests = [
  {
    title: "`rateLimit({ limit: '100/m' })` of `/express` and its first request",
    program: `const { rateLimit } = await import('diana-limiter/express')
      const limit = rateLimit({ limit: '100/m' }); limiter = limit; ${request}`,
    most: 1.5,
  },
  {
    title: '`createLimiter({ rules })` and its first decision',
    program: decided("{ rules: [{ id: 'all', limit: '100/m' }] }"),
    most: 2,
  },
  {
    title: '`createLimiter({ config })` and its first decision',
    program: decided("{ config: 'diana.yaml' }"),
    most: 3,
  },
]

/** What is bundled, with the most kB after gzip. Parts that are loaded by options (rule files, Redis) are files of their own. */
const bundles = [
  {
    title: '`rateLimit` of `/express`',
    text: "import { rateLimit } from 'diana-limiter/express'\nrateLimit({ limit: '1/s' })",
    most: 25_000,
  },
  {
    title: '`rateLimit` of `/fetch`',
    text: "import { rateLimit } from 'diana-limiter/fetch'\nrateLimit({ limit: '1/s' })",
    most: 25_000,
  },
  { title: '`createLimiter`', text: "import { createLimiter } from 'diana-limiter'\ncreateLimiter({ rules: [] })" },
  {
    title: '`createLimiter` with what the first limiter loads, without rule files and Redis',
    text: "import { createLimiter } from 'diana-limiter'\ncreateLimiter({ rules: [] })",
    with: 'dist/engine.js',
    most: 60_000,
  },
  { title: '`RateLimiter`', text: "import { RateLimiter } from 'diana-limiter'\nRateLimiter.create(5)", most: 15_000 },
]

const folder = mkdtempSync(join(tmpdir(), 'diana-size-'))
try {
  const { code, output } = await runNpm(['install', '--no-workspaces', '--prefix', tools])
  if (code !== 0) throw new Error(`npm install in test/consumers failed:\n${output}`)
  const packed = await packPackages(published, folder)
  const { tarball } = packed.find(({ name }) => name === 'diana-limiter')
  const modules = join(root, 'node_modules')
  const consumer = await Consumer.create(join(folder, 'consumer'), { tarball, modules, links: runtimeLinks })
  symlinkSync(join(tools, 'node_modules', PEER), consumer.path(`node_modules/${PEER}`), 'junction')
  const table = tableOf([
    ...diskRows(consumer, tarball),
    ...startRows(consumer),
    ...gatewayRows(consumer),
    ...(await bundleRows(consumer)),
  ])
  console.log(table)
  if (process.argv.includes('--write')) {
    const text = readFileSync(page, 'utf8')
    writeFileSync(page, text.replace(/(<!-- size -->\n)[\s\S]*?(?=<!-- end -->)/, `$1${table}\n`))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function diskRows(consumer, tarball) {
  const bytes = diskBytes(consumer.path('node_modules/diana-limiter'))
  const { dependencies = {} } = JSON.parse(
    readFileSync(consumer.path('node_modules/diana-limiter/package.json'), 'utf8'),
  )
  const names = Object.keys(dependencies)
  if (names.length > 0) process.exitCode = 1
  return [
    ['`diana-limiter`, to download', kilobytes(statSync(tarball).size)],
    ['`diana-limiter`, on disk', kilobytes(bytes), mark(bytes, MOST_DISK_BYTES, kilobytes)],
    ['packages that it installs', names.join(', ') || 'none', names.length > 0 ? 'none: missed' : 'none'],
  ]
}

function startRows(consumer) {
  const entries = Object.entries(
    JSON.parse(readFileSync(consumer.path('node_modules/diana-limiter/package.json'), 'utf8')).exports,
  )
    .filter(([, file]) => typeof file === 'object')
    .map(([entry]) => `diana-limiter${entry.slice(1)}`)
  // those of which the peer is not installed cannot be imported
  const light = entries.filter(name => !/\/(nest|opentelemetry|prom-client|testing)$/.test(name)).map(imported)
  const all = [peer, ...firstRequests, imported(PEER), ...light]
  const times = all.map(() => [])
  // in turns, so that what else the machine does meets all alike
  for (let turn = 0; turn < STARTS; turn++) {
    for (const [at, { program }] of all.entries()) times[at].push(cpuMs(consumer, program))
  }
  const medians = times.map(list => list.sort((one, other) => one - other)[STARTS >> 1])
  return all.map(({ title, most }, at) => {
    const ratio = medians[at] / medians[0]
    const figure = `${Math.round(medians[at])} ms${at === 0 ? '' : `, ${ratio.toFixed(1)} ×`}`
    return [`${title}, CPU time`, figure, most === undefined ? '' : mark(ratio, most, times => `${times} ×`)]
  })
}

/** What the programs cost until they listen. */
function gatewayRows(consumer) {
  writeFileSync(
    consumer.path('gateway.yaml'),
    "rules: [{ id: all, limit: 100/m }]\ngateway: { routes: [{ to: 'http://127.0.0.1:9' }] }\nserve: {}\n",
  )
  return ['start', 'serve'].map(command => {
    const times = Array.from({ length: STARTS }, () => startMs(consumer, command)).sort((one, other) => one - other)
    const median = times[STARTS >> 1]
    return [
      `\`diana ${command}\` until it listens, CPU time`,
      `${median} ms`,
      mark(median, MOST_START_MS, most => `${most} ms`),
    ]
  })
}

// the time of a process that has ended is that of its whole life: it ends itself when it has said that it listens
function startMs(consumer, command) {
  const program = join(built, 'diana-gateway/dist/diana.js')
  const text = `const write = process.stdout.write.bind(process.stdout)
    process.stdout.write = (...said) => {
      if (!String(said[0]).includes('listens on')) return true
      const { user, system } = process.cpuUsage()
      write(String(Math.round((user + system) / 1000)), () => process.kill(process.pid, 'SIGKILL'))
      return true
    }
    process.argv = [process.argv[0], ${JSON.stringify(program)}, '${command}', '--config', 'gateway.yaml', '--port', '0', '--admin-port', '0']
    if ('${command}' === 'serve') process.argv.push('--grpc-port', '0')
    await import(${JSON.stringify(program)})`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', text], {
    cwd: consumer.folder,
    encoding: 'utf8',
  })
  return Number(stdout)
}

async function bundleRows(consumer) {
  const rows = []
  for (const { title, text, most, with: part } of bundles) {
    const input = consumer.path('bundled.mjs')
    writeFileSync(input, text)
    const bundle = await rolldown({ input, platform: 'node', external: ['ioredis'], logLevel: 'silent' })
    const { output } = await bundle.generate({ format: 'esm', minify: true })
    const files = loadedAtOnce(output, part)
    const bytes = files.reduce((sum, { code }) => sum + code.length, 0)
    const packed = files.reduce((sum, { code }) => sum + gzipSync(code).length, 0)
    const figure = `${kilobytes(bytes)}, ${kilobytes(packed)} with gzip`
    rows.push([`${title}, bundled and minified by Rolldown`, figure, most ? mark(packed, most, kilobytes) : ''])
  }
  return rows
}

/** The files of a bundle that its first one imports, directly or not, and those of a part that it loads later. */
function loadedAtOnce(output, part) {
  const isFirst = ({ isEntry, facadeModuleId = '' }) => isEntry || (part && facadeModuleId?.includes(part))
  const found = new Set()
  const visit = file => {
    if (file === undefined || found.has(file)) return
    found.add(file)
    for (const name of file.imports) visit(output.find(({ fileName }) => fileName === name))
  }
  const first = output.filter(isFirst)
  if (part && first.length < 2) throw new Error(`no file of the bundle is ${part}`)
  first.forEach(visit)
  return [...found]
}

function cpuMs(consumer, program) {
  const text = `let limiter; const from = process.cpuUsage(); ${program}
    const { user, system } = process.cpuUsage(from); console.log(user + system); await limiter?.close?.(); process.exit()`
  const args = ['--input-type=module', '--eval', text]
  return Number(execFileSync(process.execPath, args, { cwd: consumer.folder, encoding: 'utf8' })) / 1000
}

function mark(value, most, show) {
  if (value > most) process.exitCode = 1
  return `at most ${show(most)}${value > most ? ': missed' : ''}`
}

function kilobytes(bytes) {
  return `${Math.round(bytes / 1000).toLocaleString('en')} kB`
}

function tableOf(rows) {
  const lines = rows.map(([what, figure, bound = '']) => `| ${what} | ${figure} | ${bound} |`)
  return ['| what | size or time | mark |', '|---|---|---|', ...lines].join('\n')
}
