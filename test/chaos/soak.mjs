#!/usr/bin/env node
// npm run long -- soak [--minutes 10]
// Full speed and random faults: nothing grows, nothing is left over, nobody fails.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackages } from '../helpers/command.mjs'
import { faults } from './faults.mjs'

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '10' } } })
const minutes = Number(values.minutes)
if (!(minutes > 0)) {
  console.error('usage: npm run long -- soak [--minutes 10]')
  process.exit(2)
}
const PROCESSES = 3
/** Heaps may breathe by so much. */
const GROWTH_BYTES = 15e6
/** Each process has up to 32 timers of its own; the rest is Diana's. */
const MOST_RESOURCES = 32 + 15
const rules = [
  { id: 'all', match: { path: '/' }, limit: '2000/s' },
  { id: 'each', match: { path: '/' }, by: 'header:x-account-id', limit: '20/s', algorithm: 'token-bucket' },
  { id: 'places', match: { path: '/places' }, limit: 30, algorithm: 'concurrency' },
]

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
buildPackages()
const usable = faults.filter(fault => fault.scene.name === 'single' && !fault.isDownAtStart && !fault.shiftMs)
const scene = await usable[0].scene()
const worker = fileURLToPath(new URL('fleet/soak-worker.mjs', import.meta.url))
const children = Array.from({ length: PROCESSES }, () => fork(worker, { execArgv: ['--expose-gc', '--no-warnings'] }))
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
})
const ask = async (child, message) => {
  const answered = once(child, 'message').then(([answer]) => answer)
  child.send(message)
  return await answered
}
const askAll = message => Promise.all(children.map(child => ask(child, message)))

await askAll({ store: scene.limiter.store, rules })
const until = performance.now() + minutes * 60_000
const samples = []
while (performance.now() < until) {
  const fault = usable[Math.floor(Math.random() * usable.length)]
  await fault.begin(scene)
  await pause(Math.random() * 2000)
  await fault.end(scene)
  await pause(3000)
  const kept = await askAll('kept')
  samples.push(kept)
  const heaps = kept.map(({ heap }) => `${(heap / 1e6).toFixed(1)} MB`).join(', ')
  const calls = kept.reduce((sum, one) => sum + one.calls, 0)
  console.log(`${fault.name.padEnd(40)} ${calls} calls  heaps ${heaps}  resources ${kept.map(one => one.resources)}`)
}
const ends = await askAll('stop')
await scene.close()

const findings = ends.flatMap((end, i) => {
  const early = samples[Math.min(samples.length - 1, 1)][i]
  const late = samples.at(-1)[i]
  return [
    end.failures > 0 && `process ${i}: ${end.failures} calls failed`,
    end.rejections > 0 && `process ${i}: ${end.rejections} unhandled rejections`,
    late.heap - early.heap > GROWTH_BYTES && `process ${i}: the heap grew from ${early.heap} to ${late.heap}`,
    late.resources > MOST_RESOURCES && `process ${i}: ${late.resources} timers and sockets`,
    end.held.some(places => places > 0) && `process ${i}: ${end.held} places are held by nobody`,
    !end.healthy && `process ${i}: is not back`,
  ].filter(Boolean)
})
console.log(findings.length === 0 ? 'nothing grew, nothing was left over, nobody failed' : findings.join('\n'))
process.exit(findings.length === 0 ? 0 : 1)
