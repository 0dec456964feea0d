#!/usr/bin/env node
// npm run long -- clients [--all]
// Uses real clients and servers with the gateway, as far as they are installed; with --all, one that is not installed fails.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))
const packages = ['socket.io', 'socket.io-client', 'graphql', 'graphql-ws', 'ws']

function readArguments() {
  try {
    return parseArgs({ options: { all: { type: 'boolean', default: false } } }).values
  } catch (error) {
    console.error(`${error.message}; usage: npm run long -- clients [--all]`)
    return process.exit(2)
  }
}

const { all } = readArguments()
const given = process.env.DIANA_CLIENT_PACKAGES
const folder = given ?? mkdtempSync(join(tmpdir(), 'diana-clients-'))
if (given === undefined) {
  const { status } = spawnSync('npm', [
    'install',
    '--silent',
    '--no-audit',
    '--no-fund',
    '--prefix',
    folder,
    ...packages,
  ])
  if (status !== 0) console.log(`not installed: ${packages.join(', ')} (npm install failed)`)
}
const vitest = `${root}node_modules/vitest/vitest.mjs`
const env = { ...process.env, DIANA_CLIENTS: all ? 'all' : 'installed', DIANA_CLIENT_PACKAGES: folder }
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/clients/clients.test.ts'], {
  cwd: root,
  env,
  stdio: 'inherit',
})
if (given === undefined) rmSync(folder, { recursive: true, force: true })
process.exitCode = status ?? 1
