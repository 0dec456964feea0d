#!/usr/bin/env node
// npm run long -- walk [--steps N] [--seed N] [--on redis|ledgers]
// Random walks over calls, refunds, resets, blocks and reloads, on memory and on a real Redis, or on the ledgers of a store of the user in a
// map; the answers must be equal.
import { startRedis } from '../accuracy/redis.mjs'
import { buildPackages, mistake, readArguments, text, wholeNumber } from '../helpers/command.mjs'

const usage = 'usage: npm run long -- walk [--steps N] [--seed N] [--on redis|ledgers]'

const { steps, seed, on } = readArguments(usage, { steps: text('100000'), seed: text(), on: text('redis') }, values => {
  if (!['redis', 'ledgers'].includes(values.on)) mistake('--on must be redis or ledgers')
  const seed = values.seed ?? String(Date.now() % 1_000_000)
  if (!/^\d{1,9}$/.test(seed)) mistake('--seed must be a whole number')
  return { steps: wholeNumber('steps', values.steps), seed: Number(seed), on: values.on }
})

buildPackages()
const { inMap, inRedis, seededWalks } = await import('../../packages/limiter/dist/testing/seeded-walks.js')
const redis = on === 'redis' ? await startRedis() : undefined
const differences = await seededWalks({
  ...(redis ? inRedis(([command, ...args]) => redis.client.call(command, ...args)) : inMap()),
  ...{ steps, seed },
  onProgress: (done, found) =>
    process.stderr.isTTY && process.stderr.write(`\r${done} of ${steps}, ${found} differences`),
})
await redis?.close()
for (const { walk, step, algorithms, error } of differences.slice(0, 5)) {
  console.error(`\nwalk ${walk}, step ${step}, rules by ${algorithms.join(', ')}: ${error.message}`)
}
console.log(`${steps} steps, seed ${seed}, differences found: ${differences.length}`)
process.exit(differences.length === 0 ? 0 : 1)
