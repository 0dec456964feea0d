#!/usr/bin/env node
// npm run long -- packages: packs the packages, checks the tarballs, and uses the library as applications do.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkTarball } from '../../scripts/release/check-tarball.mjs'
import { packPackages, published } from '../../scripts/release/pack.mjs'
import { root, runNpm } from '../../scripts/run.mjs'
import { Consumer, frameworkLinks, runtimeLinks, typeLinks } from './consumer.mjs'
import { environments, tableOf, tryFirst } from './first-try.mjs'

const folder = mkdtempSync(join(tmpdir(), 'diana-packages-'))
let failed = 0

try {
  await mustRun('npm run build', ['run', '--silent', 'build'])
  await mustRun('npm install in test/consumers', ['install', '--no-workspaces', '--prefix', 'test/consumers'])
  const packed = await packPackages(published, folder)
  for (const { name, tarball } of packed) {
    await report(`publint and attw, ${name}`, async () => (await checkTarball(tarball)).join('\n'))
  }
  const { tarball } = packed.find(({ name }) => name === 'diana-limiter')
  const links = [...runtimeLinks, ...typeLinks]
  const consumer = await Consumer.create(join(folder, 'consumer'), {
    ...{ tarball, links },
    modules: join(root, 'node_modules'),
  })
  const { checks } = await import('./checks.mjs')
  for (const { title, run } of checks) await report(title, () => run(consumer))
  const newcomer = await Consumer.create(join(folder, 'newcomer'), {
    ...{ tarball, links: [...runtimeLinks, ...frameworkLinks] },
    modules: join(root, 'node_modules'),
  })
  const results = []
  for (const environment of environments) {
    const modules = environment.long ? join(root, 'test/consumers/node_modules') : join(root, 'node_modules')
    const wrong = await tryFirst(environment, newcomer, modules)
    await report(`first try: ${environment.name}`, () => wrong)
    results.push({ name: environment.name, wrong })
  }
  console.log(`\n${tableOf(results)}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
process.exitCode = failed > 0 ? 1 : 0

async function report(title, check) {
  const wrong = await Promise.resolve()
    .then(check)
    .catch(error => error.message)
  if (wrong !== '') failed++
  console.log(wrong === '' ? `ok      ${title}` : `failed  ${title}\n${wrong.replace(/^/gm, '        ')}`)
}

async function mustRun(title, args) {
  const { code, output } = await runNpm(args)
  if (code !== 0) throw new Error(`${title} failed:\n${output}`)
}
