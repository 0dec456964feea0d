#!/usr/bin/env node
// npm run long -- simulate recovery [--processes 10,100,300,1000] [--seeds N] [--loss 0.02] [--latency MS] [--real N]
// How long a fleet needs to come back to its store, and what that costs the store: with the code of production on virtual
// time; with --real, N limiters in three processes on a real Redis.
// npm run long -- simulate leases [--seeds N] [--small] [--write]
// Fleets that hold permits in advance: calls over the limit, the part of it that is used, requests to the store; writes docs/scale.md.
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackages } from '../helpers/command.mjs'
import { simulateScale } from './leases.mjs'
import { MOST_BUSY_MS, markOf } from './marks.mjs'
import { realRecovery } from './real-recovery.mjs'
import { simulateRecovery } from './recovery.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = `usage: npm run long -- simulate recovery [--processes N,N,…] [--seeds N] [--loss 0…0.2] [--latency MS] [--real N]
       npm run long -- simulate leases [--seeds N] [--small] [--write]
       npm run long -- simulate overload [--seeds N]`

function fail(message, code) {
  console.error(message)
  process.exit(code)
}

function readArguments() {
  const option = { type: 'string' }
  const options = {
    processes: option,
    seeds: option,
    loss: option,
    latency: option,
    real: option,
    small: { type: 'boolean' },
    write: { type: 'boolean' },
    help: { type: 'boolean' },
  }
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    if (values.help) {
      console.log(usage)
      process.exit(0)
    }
    const [topic] = positionals
    if (positionals.length !== 1 || !['recovery', 'leases', 'overload'].includes(topic)) fail(usage, 2)
    if (values.write && values.small) fail(`--write takes all cases, without --small; ${usage}`, 2)
    const {
      processes = '3,10,100,300,1000',
      seeds = topic === 'leases' ? '200' : '5',
      loss = '0',
      latency = '2',
      real,
    } = values
    const sizes = processes.split(',').map(Number)
    const isWhole = (number, most) => Number.isInteger(number) && number >= 1 && number <= most
    if (!sizes.every(size => isWhole(size, 5000))) fail(`--processes must be whole numbers from 1 to 5000; ${usage}`, 2)
    if (!isWhole(Number(seeds), 1000)) fail(`--seeds must be a whole number from 1 to 1000; ${usage}`, 2)
    if (!(Number(loss) >= 0 && Number(loss) <= 0.2)) fail(`--loss must be a number from 0 to 0.2; ${usage}`, 2)
    if (!(Number(latency) > 0 && Number(latency) <= 50)) fail(`--latency must be from 0 to 50; ${usage}`, 2)
    if (real !== undefined && !isWhole(Number(real), 1000)) fail(`--real must be from 1 to 1000; ${usage}`, 2)
    return {
      topic,
      small: values.small,
      write: values.write,
      sizes,
      seeds: Number(seeds),
      loss: Number(loss),
      latencyMs: Number(latency),
      real: real && Number(real),
    }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

const { topic, small, write, sizes, seeds, loss, latencyMs, real } = readArguments()
buildPackages()
let missed = 0

if (topic === 'overload') {
  const { simulateOverloads } = await import('./overload/run.mjs')
  process.exit(simulateOverloads(seeds) > 0 ? 1 : 0)
}

function report(name, backMs, mark, rest) {
  const isMissed = !(backMs <= mark)
  if (isMissed) missed++
  console.log(`${name}: back within ${Math.round(backMs)} ms (mark ${mark} ms${isMissed ? ', missed' : ''}), ${rest}`)
}

if (topic === 'leases') {
  missed = await simulateScale({ seeds, small, write, root })
} else if (real) {
  const { backMs, spreadMs, redisMs, lateMs } = await realRecovery({ limiters: real })
  const rest = `${Math.round(spreadMs)} ms from the first to the last, ${Math.round(redisMs)} ms of Redis for scripts`
  report(
    `${real} real limiters`,
    backMs,
    markOf(real),
    `${rest}; the processes were late by up to ${Math.round(lateMs)} ms`,
  )
} else {
  const { Recovery } = await import('../../packages/limiter/dist/stores/failover/recovery.js')
  const { Fleet } = await import('../../packages/limiter/dist/stores/membership/fleet.js')
  for (const kind of ['refused', 'silent']) {
    for (const processes of sizes) {
      const runs = []
      for (let seed = 1; seed <= seeds; seed++) {
        runs.push(await simulateRecovery({ Recovery, Fleet }, { processes, seed, latencyMs, loss, kind }))
      }
      const most = name => Math.max(...runs.map(run => run[name]))
      const backMs = most('missing') > 0 ? Number.POSITIVE_INFINITY : most('backMs')
      const rest = `${Math.round(most('spreadMs'))} ms from the first to the last, ${most('commands')} commands`
      report(
        `${processes} processes, ${kind}`,
        backMs,
        markOf(processes),
        `${rest}, ${Math.round(most('busiestMs'))} ms of Redis in the busiest second`,
      )
      if (most('busiestMs') > MOST_BUSY_MS) missed++
    }
  }
}
process.exit(missed === 0 ? 0 : 1)
