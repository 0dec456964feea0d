#!/usr/bin/env node
// npm run accuracy [-- --short] [--write] [--only TEXT] [--fault more|less|apart]
// Real processes share limits in a real Redis; every admitted call is held against its limit by the clock of Redis.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { cases, shortCases } from './cases.mjs'
import { faults, runFleet } from './fleet.mjs'
import { judge } from './judge.mjs'
import { kinds } from './kinds.mjs'
import { writePage } from './page.mjs'
import { startCluster, startRedis } from './redis.mjs'
import { headLine, rowLine, summaryOf } from './report.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = `usage: npm run accuracy [-- --short] [--write] [--only TEXT] [--fault ${Object.keys(faults).join('|')}]`
/** A case whose load the machine could not offer is tried so often; no other is tried twice. */
const TRIES = 3

function fail(message, code) {
  console.error(message)
  process.exit(code)
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        short: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
        only: { type: 'string' },
        fault: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) fail(usage, 0)
    if (values.fault && !faults[values.fault]) fail(`there is no fault "${values.fault}"; ${usage}`, 2)
    const all = values.short ? shortCases : cases
    const isNamed = all.some(({ kind }) => kind === values.only)
    const isChosen = kind => !values.only || (isNamed ? kind === values.only : kind.includes(values.only))
    const chosen = all.filter(({ kind }) => isChosen(kind))
    if (chosen.length === 0) fail(`there is no case of "${values.only}"; ${usage}`, 2)
    if (values.write && (values.short || values.only || values.fault)) fail(`--write takes all cases; ${usage}`, 2)
    return { ...values, chosen }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

function build() {
  const tsc = `${root}node_modules/typescript/bin/tsc`
  const { status } = spawnSync(process.execPath, [tsc, '-b'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0) fail('tsc -b failed', 1)
}

async function measure(one, redis, fault) {
  for (let tried = 1; ; tried++) {
    await redis.clear()
    const result = judge(one, await runFleet(one, redis.target, fault))
    if (result.over > 0 || result.wasOffered || tried === TRIES) return { ...one, ...result, tried }
  }
}

const { chosen, write, fault } = readArguments()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
build()
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
