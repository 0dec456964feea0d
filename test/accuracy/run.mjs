#!/usr/bin/env node
// npm run long -- accuracy [--short] [--write] [--only TEXT] [--lease auto|off] [--fault more|less|apart]
// Real processes share limits in a real Redis; every admitted call is held against its limit by the clock of Redis.
import { fileURLToPath } from 'node:url'
import { buildPackages, flag, mistake, readArguments, text } from '../helpers/command.mjs'
import { cases, shortCases } from './cases.mjs'
import { faults, runFleet } from './fleet.mjs'
import { judge } from './judge.mjs'
import { kinds } from './kinds.mjs'
import { writePage } from './page.mjs'
import { startCluster, startRedis } from './redis.mjs'
import { headLine, rowLine, summaryOf } from './report.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = `usage: npm run long -- accuracy [--short] [--write] [--only TEXT] [--lease auto|off] [--fault ${Object.keys(faults).join('|')}]`
/** A case whose load the machine could not offer is tried so often; no other is tried twice. */
const TRIES = 3

const shapes = { short: flag, write: flag, only: text(), lease: text(), fault: text() }
const { chosen, write, fault, lease } = readArguments(usage, shapes, values => {
  if (values.fault && !faults[values.fault]) mistake(`there is no fault "${values.fault}"`)
  if (values.lease && !['auto', 'off'].includes(values.lease)) mistake('--lease must be auto or off')
  const all = values.short ? shortCases : cases
  const isNamed = all.some(({ kind }) => kind === values.only)
  const isChosen = ({ kind, limit }) => (isNamed ? kind === values.only : `${kind} ${limit.text}`.includes(values.only))
  const chosen = values.only ? all.filter(isChosen) : all
  if (chosen.length === 0) mistake(`there is no case of "${values.only}"`)
  if (values.write && (values.short || values.only || values.fault)) mistake('--write takes all cases')
  return { ...values, chosen }
})

const change = rule => ({ ...rule, ...(lease && { lease }) })

async function measure(one, redis, fault = rule => rule) {
  for (let tried = 1; ; tried++) {
    await redis.clear()
    const result = judge(one, await runFleet(one, redis.target, (rule, process) => change(fault(rule, process))))
    if (result.over > 0 || result.wasOffered || tried === TRIES) return { ...one, ...result, tried }
  }
}

buildPackages()
const startedAt = performance.now()
const redis = await startRedis()
const cluster = chosen.some(({ kind }) => kinds[kind].isOnCluster) ? await startCluster() : undefined
const results = []
try {
  console.log(headLine())
  for (const [i, one] of chosen.entries()) {
    const result = {
      number: i + 1,
      ...(await measure(one, kinds[one.kind].isOnCluster ? cluster : redis, faults[fault])),
    }
    console.log(rowLine(result))
    results.push(result)
  }
  const about = { seconds: (performance.now() - startedAt) / 1000, redis: await redis.client.info('server') }
  console.log(`\n${summaryOf(results, about).join('\n')}`)
  if (write) writePage(`${root}docs/accuracy.md`, results, about)
} finally {
  await redis.close()
  await cluster?.close()
}
if (results.some(result => result.faults.length > 0)) process.exitCode = 1
