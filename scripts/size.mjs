#!/usr/bin/env node
// npm run long -- size: what diana-limiter costs an application, on disk, at its start and in a bundle; --write puts it into docs/packages.md.
// Ends with exit code 1 if a figure misses its mark.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { Consumer, runtimeLinks } from '../test/consumers/consumer.mjs'
import { packPackages } from './release/pack.mjs'
import { root, runNpm } from './run.mjs'

const STARTS = 15
const PEER = 'express-rate-limit'
const MOST_TIMES_PEER = 3
const MOST_RATE_LIMITER_BYTES = 40_000
const MOST_DISK_BYTES = 13_600_000
const page = join(root, 'docs/packages.md')
const tools = join(root, 'test/consumers')

/** Programs whose start is measured, each in a process of its own. */
const starts = [
  [`import "${PEER}"`, `await import('${PEER}')`],
  ['import "diana-limiter"', "await import('diana-limiter')"],
  ['import "diana-limiter/express"', "await import('diana-limiter/express')"],
  ['import "diana-limiter/http"', "await import('diana-limiter/http')"],
  ['import "diana-limiter/decorators"', "await import('diana-limiter/decorators')"],
  ['import "diana-limiter" and createLimiter({ rules })', firstLimiter("{ rules: [{ id: 'all', limit: '100/m' }] }")],
  ['import "diana-limiter" and createLimiter({ config })', firstLimiter("{ config: 'diana.yaml' }")],
]
const bundles = [
  ['import { RateLimiter }', "import { RateLimiter } from 'diana-limiter'\nRateLimiter.create(5)"],
  ['import { guard } from "diana-limiter/http"', "import { guard } from 'diana-limiter/http'\nguard()"],
  ['import { createLimiter }', "import { createLimiter } from 'diana-limiter'\ncreateLimiter({ rules: [] })"],
]

const folder = mkdtempSync(join(tmpdir(), 'diana-size-'))
try {
  const { code, output } = await runNpm(['install', '--no-workspaces', '--prefix', tools])
  if (code !== 0) throw new Error(`npm install in test/consumers failed:\n${output}`)
  const [{ tarball }] = await packPackages(['packages/limiter'], folder)
  const modules = join(root, 'node_modules')
  const consumer = await Consumer.create(join(folder, 'consumer'), { tarball, modules, links: runtimeLinks })
  symlinkSync(join(tools, 'node_modules', PEER), consumer.path(`node_modules/${PEER}`), 'junction')
  const table = tableOf([
    ...diskRows(consumer, tarball, modules),
    ...startRows(consumer),
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

function diskRows(consumer, tarball, modules) {
  const parts = ['diana-limiter', ...runtimeLinks].map(name => {
    const path = name === 'diana-limiter' ? consumer.path(`node_modules/${name}`) : join(modules, name)
    return { name, bytes: diskBytes(path) }
  })
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  return [
    ['`diana-limiter`, to download', kilobytes(statSync(tarball).size)],
    ...parts.map(({ name, bytes }) => [`\`${name}\`, on disk`, kilobytes(bytes)]),
    ['all of them, on disk', kilobytes(total), mark(total, MOST_DISK_BYTES, kilobytes)],
  ]
}

function startRows(consumer) {
  const leastMs = starts.map(() => Number.POSITIVE_INFINITY)
  // in turns, so that what else the machine does meets all alike; the least of many, since it only adds
  for (let turn = 0; turn < STARTS; turn++) {
    for (const [at, [, program]] of starts.entries()) leastMs[at] = Math.min(leastMs[at], cpuMs(consumer, program))
  }
  const [peerMs] = leastMs
  return starts.map(([title], at) => {
    const times = leastMs[at] / peerMs
    const figure = `${Math.round(leastMs[at])} ms${at === 0 ? '' : `, ${times.toFixed(1)} ×`}`
    const isMarked = at === 1
    return [`\`${title}\`, CPU time`, figure, isMarked ? mark(times, MOST_TIMES_PEER, most => `${most} ×`) : '']
  })
}

async function bundleRows(consumer) {
  const { build } = createRequire(join(tools, 'package.json'))('esbuild')
  const rows = []
  for (const [at, [title, contents]] of bundles.entries()) {
    const { outputFiles } = await build({
      stdin: { contents, resolveDir: consumer.folder },
      absWorkingDir: consumer.folder,
      ...{ bundle: true, minify: true, write: false, platform: 'node', format: 'esm', logLevel: 'error' },
    })
    const [{ contents: code }] = outputFiles
    const figure = `${kilobytes(code.length)}, ${kilobytes(gzipSync(code).length)} with gzip`
    rows.push([
      `\`${title}\`, bundled and minified by esbuild`,
      figure,
      at === 0 ? mark(code.length, MOST_RATE_LIMITER_BYTES, kilobytes) : '',
    ])
  }
  return rows
}

function firstLimiter(options) {
  return `const { createLimiter } = await import('diana-limiter'); limiter = await createLimiter(${options})`
}

/** What a file system with blocks of 4 KiB takes for a folder, so that the figure is the same on each. */
function diskBytes(path) {
  const stats = statSync(path)
  const own = Math.ceil(stats.size / 4096) * 4096
  if (!stats.isDirectory()) return own
  return readdirSync(path).reduce((sum, name) => sum + diskBytes(join(path, name)), 4096)
}

function cpuMs(consumer, program) {
  const text = `let limiter; const from = process.cpuUsage(); ${program}
    const { user, system } = process.cpuUsage(from); console.log(user + system); await limiter?.close()`
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
