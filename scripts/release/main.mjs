#!/usr/bin/env node
// npm run release -- major|minor|patch|1.2.3 [--dry-run] [--repository URL]
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root, runNpm } from '../run.mjs'
import { checkTarball } from './check-tarball.mjs'
import { packPackages, published } from './pack.mjs'
import { release } from './release.mjs'

const usage = 'usage: npm run release -- major|minor|patch|1.2.3 [--dry-run] [--repository URL]'
const tarballs = join(root, 'dist/release')

async function build() {
  // files that were renamed or removed since would be packed, too
  for (const folder of published) rmSync(join(root, folder, 'dist'), { recursive: true, force: true })
  const { code, output } = await runNpm(['run', '--silent', 'build'])
  if (code !== 0) throw new Error(`npm run build failed:\n${output}`)
}

function pack() {
  rmSync(tarballs, { recursive: true, force: true })
  mkdirSync(tarballs, { recursive: true })
  return packPackages(published, tarballs)
}

const args = process.argv.slice(2)
const at = args.indexOf('--repository')
const [, repository] = at < 0 ? [] : args.splice(at, 2)
const words = args.filter(word => word !== '--dry-run')
if ((at >= 0 && repository === undefined) || words.length !== 1 || words[0].startsWith('-')) {
  console.error(usage)
  process.exitCode = 2
} else {
  const isDryRun = process.argv.includes('--dry-run')
  const date = new Date().toISOString().slice(0, 10)
  const parts = { build, pack, check: checkTarball }
  await release({
    root,
    step: words[0],
    date,
    isDryRun,
    print: console.log,
    parts,
    folders: published,
    repository,
  }).catch(error => {
    console.error(error.message)
    process.exitCode = 1
  })
}
