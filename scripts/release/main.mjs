#!/usr/bin/env node
// npm run release -- major|minor|patch|1.2.3 [--dry-run] [--repository URL]
// npm run release -- pack v1.2.3
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { built } from '../build/build-packages.mjs'
import { root, runNpm } from '../run.mjs'
import { checkTarball } from './check-tarball.mjs'
import { packPackages, published } from './pack.mjs'
import { packTagged, release } from './release.mjs'
import { sbomOf } from './sbom.mjs'

const usage = `usage: npm run release -- major|minor|patch|1.2.3 [--dry-run] [--repository URL]
       npm run release -- pack v1.2.3`
const tarballs = join(root, 'dist/release')

async function build() {
  // files that were renamed or removed since would be packed, too
  for (const folder of published) rmSync(join(root, folder, 'dist'), { recursive: true, force: true })
  const { code, output } = await runNpm(['run', '--silent', 'build'])
  if (code !== 0) throw new Error(`npm run build failed:\n${output}`)
}

async function pack() {
  rmSync(tarballs, { recursive: true, force: true })
  mkdirSync(tarballs, { recursive: true })
  const packed = await packPackages(published, tarballs)
  for (const { folder, name, tarball } of packed) writeSbom(folder, name, tarball.replace(/tgz$/, 'cdx.json'))
  return packed
}

function writeSbom(folder, name, file) {
  const read = path => readFileSync(path, 'utf8')
  const source = join(root, folder)
  const bundle = existsSync(join(built, name)) ? join(built, name) : join(source, 'dist')
  const licenses = read(join(bundle, 'THIRD-PARTY-LICENSES.txt'))
  const lock = JSON.parse(read(join(root, 'package-lock.json')))
  const sbom = sbomOf(JSON.parse(read(join(source, 'package.json'))), lock, licenses)
  writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`)
}

const args = process.argv.slice(2)
const at = args.indexOf('--repository')
const [, repository] = at < 0 ? [] : args.splice(at, 2)
const words = args.filter(word => word !== '--dry-run')
const shared = { root, print: console.log, parts: { build, pack, check: checkTarball }, folders: published }

function start() {
  if (words[0] === 'pack' && words.length === 2) return packTagged({ ...shared, tag: words[1] })
  const isUsed = (at < 0 || repository !== undefined) && words.length === 1 && !words[0].startsWith('-')
  if (!isUsed || words[0] === 'pack') return undefined
  const date = new Date().toISOString().slice(0, 10)
  return release({ ...shared, step: words[0], date, isDryRun: process.argv.includes('--dry-run'), repository })
}

const work = start()
if (work === undefined) {
  console.error(usage)
  process.exitCode = 2
}
await work?.catch(error => {
  console.error(error.message)
  process.exitCode = 1
})
