#!/usr/bin/env node
// npm run long -- paths [--count N] [--seed N]
// Sends N random spellings of paths through every form of Diana to real services, and through every filter to the routers behind it:
// what they serve must be what was judged.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = 'usage: npm run long -- paths [--count N] [--seed N]'

function readArguments() {
  try {
    const { values } = parseArgs({ options: { count: { type: 'string' }, seed: { type: 'string' } } })
    const { count = '2000', seed = String(Date.now() % 1_000_000) } = values
    for (const [name, value] of Object.entries({ count, seed })) {
      if (!/^\d{1,9}$/.test(value)) throw new Error(`--${name} must be a whole number, not "${value}"`)
    }
    return { count, seed }
  } catch (error) {
    console.error(`${error.message}; ${usage}`)
    return process.exit(2)
  }
}

const { count, seed } = readArguments()
console.log(`${count} random targets, seed ${seed}`)
const vitest = `${root}node_modules/vitest/vitest.mjs`
const env = { ...process.env, DIANA_PATHS_COUNT: count, DIANA_PATHS_SEED: seed }
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/paths'], {
  cwd: root,
  env,
  stdio: 'inherit',
})
process.exitCode = status ?? 1
