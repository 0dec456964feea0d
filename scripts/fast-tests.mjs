#!/usr/bin/env node
// The tests that need nothing but Node: no other program, no Unix socket. `npm run long -- coverage` measures with them.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { root, run } from './run.mjs'

const NEEDS_MORE = /node:child_process|scripts\/programs|\.sock\b|process\.kill\(|chmod|mkfifo|playwright/

/** The paths of these tests, from the root of the repository. */
function fastTests() {
  const seen = new Map()
  return ['packages/limiter/src', 'packages/gateway/src', 'test']
    .flatMap(folder => testFiles(join(root, folder)))
    .filter(file => !needsMore(file, seen))
    .map(file => relative(root, file).replaceAll('\\', '/'))
}

function testFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap(entry => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : testFiles(path)
    return entry.name.endsWith('.test.ts') ? [path] : []
  })
}

/** Whether a file, or a test's helper that it imports, starts a program; what the product does is not followed. */
function needsMore(file, seen) {
  if (!seen.has(file)) {
    const text = readFileSync(file, 'utf8')
    seen.set(file, false)
    seen.set(file, NEEDS_MORE.test(text) || helpersOf(file, text).some(helper => needsMore(helper, seen)))
  }
  return seen.get(file)
}

function helpersOf(file, text) {
  const targets = [...text.matchAll(/(?:from|import\() ?'((?:\.|@test\/)[^']+)'/g)].map(([, target]) =>
    target.startsWith('.')
      ? resolve(dirname(file), target)
      : join(root, `${target.replace('@test', 'test/helpers')}.ts`),
  )
  return targets.filter(target => existsSync(target) && /[\\/](?:test|testing|scripts)[\\/]/.test(target))
}

const vitest = join(root, 'node_modules/vitest/vitest.mjs')
const projects = ['pure', 'shared', 'together'].flatMap(name => ['--project', name])
const args = ['run', ...projects, ...process.argv.slice(2), ...fastTests()]
process.exitCode = (await run(process.execPath, [vitest, ...args], { show: true })).code
