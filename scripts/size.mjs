#!/usr/bin/env node
// npm run size: what diana-limiter costs an application, on disk, at its start and in a bundle; --write puts it into docs/packages.md.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { Consumer, runtimeLinks } from '../test/consumers/consumer.mjs'
import { packPackages } from './release/pack.mjs'
import { root } from './run.mjs'

const STARTS = 15
const page = join(root, 'docs/packages.md')

const folder = mkdtempSync(join(tmpdir(), 'diana-size-'))
try {
  const [{ tarball }] = await packPackages(['packages/limiter'], folder)
  const modules = join(root, 'node_modules')
  const consumer = await Consumer.create(join(folder, 'consumer'), { tarball, modules, links: runtimeLinks })
  const table = tableOf([
    ['`diana-limiter`, to download', kilobytes(statSync(tarball).size)],
    ['`diana-limiter`, installed', kilobytes(sizeOf(consumer.path('node_modules/diana-limiter')))],
    ...runtimeLinks.map(name => [`\`${name}\`, installed`, kilobytes(sizeOf(join(modules, name)))]),
    ['`import { guard } from "diana-limiter/http"`, CPU time', `${loadMs(consumer, 'diana-limiter/http')} ms`],
    ['`import { createLimiter } from "diana-limiter"`, CPU time', `${loadMs(consumer, 'diana-limiter')} ms`],
    ['a program with the filter for `node:http`, bundled and minified', await bundleSize(consumer)],
  ])
  console.log(table)
  if (process.argv.includes('--write')) {
    const text = readFileSync(page, 'utf8')
    writeFileSync(page, text.replace(/(<!-- npm run size -->\n)[\s\S]*?(?=<!-- end -->)/, `$1${table}\n`))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function sizeOf(path) {
  const { size } = statSync(path)
  if (!statSync(path).isDirectory()) return size
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0)
}

/** CPU time, the least of several starts: what else the machine does only adds to it. */
function loadMs(consumer, entry) {
  const program = `const from = process.cpuUsage(); await import('${entry}')
    const { user, system } = process.cpuUsage(from); console.log(user + system)`
  const args = ['--input-type=module', '--eval', program]
  const start = () => Number(execFileSync(process.execPath, args, { cwd: consumer.folder, encoding: 'utf8' }))
  return Math.round(Math.min(...Array.from({ length: STARTS }, start)) / 1000)
}

async function bundleSize(consumer) {
  const input = consumer.path('program.mjs')
  const bundle = await rolldown({ input, platform: 'node', external: ['ioredis'], logLevel: 'silent' })
  const { output } = await bundle.generate({ format: 'es', minify: true })
  const code = output.map(chunk => chunk.code ?? '').join('')
  return `${kilobytes(Buffer.byteLength(code))}, ${kilobytes(gzipSync(code).length)} with gzip`
}

function kilobytes(bytes) {
  return `${Math.round(bytes / 1000).toLocaleString('en')} kB`
}

function tableOf(rows) {
  return ['| what | size or time |', '|---|---|', ...rows.map(row => `| ${row.join(' | ')} |`)].join('\n')
}
