#!/usr/bin/env node
// npm run long -- walk [--steps N] [--seed N] [--on redis|ledgers] [--api | --memory]
// Random walks over calls, refunds, settled costs, resets, blocks and reloads, on memory and on a real Redis, or on the ledgers of a store of
// the user in a map, whose answers must be equal: below the public API or, with --api, through it, also with plans, overrides, credit and
// rules that leave and come back. With --memory only a limiter that counts in memory walks, and its answers are compared with an exact list
// of calls, as they are with --api.
import { startRedis } from '../accuracy/redis.mjs'
import { buildPackages, mistake, readArguments, text, wholeNumber } from '../helpers/command.mjs'

const usage = 'usage: npm run long -- walk [--steps N] [--seed N] [--on redis|ledgers] [--api | --memory]'

const flag = { type: 'boolean', default: false }
const definitions = { steps: text('100000'), seed: text(), on: text('redis'), api: flag, memory: flag }
const { steps, seed, on, api, memory } = readArguments(usage, definitions, values => {
  if (!['redis', 'ledgers'].includes(values.on)) mistake('--on must be redis or ledgers')
  const seed = values.seed ?? String(Date.now() % 1_000_000)
  if (!/^\d{1,9}$/.test(seed)) mistake('--seed must be a whole number')
  if (values.api && values.memory) mistake('--api and --memory cannot be combined')
  if (values.on === 'ledgers' && (values.api || values.memory)) mistake('--on ledgers walks below the public API')
  return { ...values, steps: wholeNumber('steps', values.steps), seed: Number(seed) }
})

buildPackages()
const { inMap, inRedis, limiterWalks, seededWalks } = await import(
  '../../packages/limiter/dist/testing/seeded-walks.js'
)
const redis = memory || on === 'ledgers' ? undefined : await startRedis()
const send = ([command, ...args]) => redis.client.call(command, ...args)
const onProgress = (done, found) =>
  process.stderr.isTTY && process.stderr.write(`\r${done} of ${steps}, ${found} differences`)
const differences =
  api || memory
    ? await limiterWalks({ steps, seed, onProgress, redis: redis && { url: redis.target.socket, send } })
    : await seededWalks({ ...(redis ? inRedis(send) : inMap()), steps, seed, onProgress })
await redis?.close()
for (const { walk, step, algorithms, error } of differences.slice(0, 5)) {
  console.error(`\nwalk ${walk}, step ${step}, rules by ${algorithms.join(', ')}: ${error.message}`)
}
console.log(`${steps} steps, seed ${seed}, differences found: ${differences.length}`)
process.exit(differences.length === 0 ? 0 : 1)
