#!/usr/bin/env node
// npm run walk [-- --steps N] [--seed N]
// Random walks over calls, refunds, resets, blocks and reloads, on memory and on a real Redis, whose answers must be equal.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startRedis } from '../accuracy/redis.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = 'usage: npm run walk [-- --steps N] [--seed N]'

function fail(message, code) {
  console.error(message)
  process.exit(code)
}

function readArguments() {
  try {
    const { values } = parseArgs({ options: { steps: { type: 'string' }, seed: { type: 'string' } } })
    const { steps = '100000', seed = String(Date.now() % 1_000_000) } = values
    if (!/^[1-9]\d{0,8}$/.test(steps)) fail(`--steps must be a whole number of 1 or more; ${usage}`, 2)
    if (!/^\d{1,9}$/.test(seed)) fail(`--seed must be a whole number; ${usage}`, 2)
    return { steps: Number(steps), seed: Number(seed) }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

const { steps, seed } = readArguments()
const tsc = spawnSync(process.execPath, [`${root}node_modules/typescript/bin/tsc`, '-b'], {
  cwd: root,
  stdio: 'inherit',
})
if (tsc.status !== 0) fail('tsc -b failed', 1)
const { seededWalks } = await import('../../packages/limiter/dist/testing/seeded-walks.js')
const redis = await startRedis()
const differences = await seededWalks({
  ...{ steps, seed, send: ([command, ...args]) => redis.client.call(command, ...args) },
  onProgress: (done, found) =>
    process.stderr.isTTY && process.stderr.write(`\r${done} of ${steps}, ${found} differences`),
})
await redis.close()
for (const { walk, step, algorithms, error } of differences.slice(0, 5)) {
  console.error(`\nwalk ${walk}, step ${step}, rules by ${algorithms.join(', ')}: ${error.message}`)
}
console.log(`${steps} steps, seed ${seed}, differences found: ${differences.length}`)
process.exit(differences.length === 0 ? 0 : 1)
