#!/usr/bin/env node
// npm run long -- fuzz --help
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from './gateway.mjs'
import { readOptions } from './options.mjs'
import { createJobs } from './plan/jobs.mjs'
import { Session } from './round/session.mjs'

const usualMinutes = 10

const nameOf = ({ workers, filter, isTls, target }) =>
  `${workers} worker${workers > 1 ? 's' : ''}, filters: ${filter}${isTls ? ', TLS' : ''}${target ? `, target: ${target}` : ''}`

function report({ plan, configuration }, findings, firstRound) {
  const { seed, round, theme } = plan
  const { workers, filter, isTls, target = 'gateway' } = configuration
  const file = join(tmpdir(), `diana-fuzz-${seed}-${round}-${workers}-${filter}${isTls ? '-tls' : ''}-${target}.json`)
  writeFileSync(file, JSON.stringify({ configuration, plan }, undefined, 1))
  console.log(`FOUND in round ${round} (${theme}) of seed ${seed}, with ${nameOf(configuration)}:`)
  for (const { kind, text } of findings) console.log(`  ${kind}: ${text}`)
  console.log(`  this round again: npm run long -- fuzz --replay ${file}`)
  const before = `--seed ${seed} --round ${firstRound} --rounds ${round - firstRound + 1}`
  if (round > firstRound) {
    const only = `--workers ${workers} --filter ${filter}${isTls ? ' --tls' : ''} --target ${target}`
    console.log(`  and those before it: npm run long -- fuzz ${before} ${only}`)
  }
}

const options = readOptions()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
build()

const { minutes = options.rounds ? Number.POSITIVE_INFINITY : usualMinutes, keepsOn } = options
const until = performance.now() + minutes * 60_000
const seed = options.seed ?? Math.floor(Math.random() * 1e9)
const totals = { rounds: 0 }
let session
let found = 0
if (!options.replay && !options.short) console.log(`seed ${seed}`)
for (const job of createJobs({ ...options, seed })) {
  if (performance.now() > until) break
  const { plan, configuration } = job
  if (session?.configuration !== configuration) {
    await session?.close()
    session = await Session.start(configuration, plan.round)
    console.log(`with ${nameOf(configuration)}`)
  }
  const { findings, counts, line } = await session.play(plan)
  for (const [name, count] of Object.entries({ rounds: 1, ...counts })) totals[name] = (totals[name] ?? 0) + count
  console.log(`round ${plan.round} ${plan.theme.padEnd(10)} ${line}`)
  if (findings.length === 0) continue
  found++
  report(job, findings, session.firstRound)
  await session.close()
  session = undefined
  if (!keepsOn) break
}
await session?.close()
const sums = Object.entries(totals).map(([name, count]) => `${name} ${count}`)
console.log(`${sums.join(', ')}; ${found === 0 ? 'nothing was found' : `${found} rounds with findings`}`)
process.exit(found === 0 ? 0 : 1)
