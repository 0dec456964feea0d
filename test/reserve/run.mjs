#!/usr/bin/env node
// npm run long -- reserve [--processes N] [--calls N]
// Calls of unknown cost at once, by several processes on one Redis: no more is admitted than was reserved, and after all are settled
// the sum is exact. Then the same with a process that is killed before it settles: what it had reserved is free after `hold`.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startRedis } from '../accuracy/redis.mjs'
import { buildPackages, readArguments, text, wholeNumber } from '../helpers/command.mjs'
import { HOLD_MS, LIMIT, wideRules } from './rules.mjs'

const usage = 'usage: npm run long -- reserve [--processes N] [--calls N]'
const { processes, calls } = readArguments(usage, { processes: text('5'), calls: text('50') }, values => ({
  processes: wholeNumber('processes', values.processes),
  calls: wholeNumber('calls', values.calls),
}))
const ESTIMATE = 10

buildPackages()
const { createLimiter } = await import('../../packages/limiter/dist/index.js')
const redis = await startRedis()
const call = { method: 'POST', path: '/v1/chat', attributes: { account: 'u1' } }
const worker = fileURLToPath(new URL('worker.mjs', import.meta.url))
let faults = 0

function report(what, isRight, figures) {
  if (!isRight) faults++
  console.log(`${isRight ? 'ok   ' : 'FAULT'} ${what}: ${figures}`)
}

/** What Redis has counted, read by a limit that no debt exceeds. */
async function counted() {
  const limiter = await createLimiter({ store: { redis: redis.target.socket }, rules: wideRules })
  const { decisions } = await limiter.peek(call)
  await limiter.close()
  return 1_000_000 - decisions[0].remaining
}

const heard = async one => (await once(one, 'message'))[0]
const sum = numbers => numbers.reduce((all, number) => all + number, 0)

async function round(kills) {
  await redis.clear()
  const each = Math.ceil(calls / processes)
  const all = Array.from({ length: processes }, () => fork(worker, [redis.target.socket, `${each}`, `${ESTIMATE}`]))
  await Promise.all(all.map(heard))
  const answers = all.map(heard)
  for (const one of all) one.send('reserve')
  const admitted = (await Promise.all(answers)).map(answer => answer.admitted)
  const reserved = sum(admitted) * ESTIMATE
  report(
    `${each * processes} calls at once on ${LIMIT}/m by ${processes} processes`,
    reserved <= LIMIT,
    `${reserved} reserved`,
  )
  report('counted before they are settled', (await counted()) === reserved, `${await counted()}`)
  const killed = kills ? all[admitted.indexOf(Math.max(...admitted))] : undefined
  killed?.kill('SIGKILL')
  const settling = all.filter(one => one !== killed)
  const ends = settling.map(heard)
  for (const one of settling) one.send('settle')
  const used = sum((await Promise.all(ends)).map(end => end.used))
  if (killed) {
    const held = Math.max(...admitted) * ESTIMATE
    report('counted after one was killed', (await counted()) === used + held, `${await counted()} of ${used} + ${held}`)
    await pause(HOLD_MS + 200)
  }
  const found = await counted()
  report(killed ? 'counted when hold is over' : 'counted after all were settled', found === used, `${found} of ${used}`)
  await Promise.all(all.map(one => one.exitCode === null && one.signalCode === null && once(one, 'exit')))
}

await round(false)
await round(true)
await redis.close()
process.exit(faults === 0 ? 0 : 1)
