#!/usr/bin/env node
import { buildPackages, mistake, readArguments, text } from '../helpers/command.mjs'
import { attacks } from './attacks/index.mjs'
import { measure } from './under-attack.mjs'

const usage = `usage: npm run long -- attack [--seconds 8] [--only TEXT] [--workers 1]

Attacks a gateway that has its default settings, one attack after the other, while wrk calls it as a well-behaved caller does.
Attackers call from other addresses than wrk (127.0.0.2 and on). No call of wrk may fail.

  --seconds N   how long each attack takes
  --only TEXT   only attacks whose names contain this: ${attacks.map(({ name }) => name).join(', ')}
  --workers N   the gateway's workers

Exit codes: 0 no call failed, 1 some did or the gateway ended, 2 a mistake in the command.`

const quiet = { name: 'no attack', connections: 0, steps: () => [] }

const { seconds, workers, chosen } = readArguments(
  usage,
  { seconds: text('8'), only: text(''), workers: text('1') },
  values => {
    const [seconds, workers] = [Number(values.seconds), Number(values.workers)]
    if (!(seconds >= 1) || !(workers >= 1)) mistake('--seconds and --workers must be 1 or more')
    const chosen = attacks.filter(({ name }) => name.includes(values.only))
    if (chosen.length === 0) mistake(`there is no attack "${values.only}"`)
    return { seconds, workers, chosen }
  },
)

const heads = ['attack', 'calls', 'failed', 'p50', 'p99', 'peak RSS', 'connections', "attackers' statuses"]
const widths = [24, 8, 8, 9, 9, 9, 12]
const row = cells => cells.map((cell, at) => (at === 0 ? cell.padEnd(24) : cell.padStart(widths[at] ?? 0))).join('  ')

buildPackages()

console.log(row(heads))
let findings = 0
for (const attack of [quiet, ...chosen]) {
  const result = await measure(attack, { seconds, workers })
  const { calls, failed, p50Ms, p99Ms, peakBytes, connections, statuses, faults } = result
  const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status}×${count}`)
  const times = [p50Ms, p99Ms].map(ms => `${ms.toFixed(1)} ms`)
  const peak = `${Math.round(peakBytes / 1e6)} MB`
  console.log(row([attack.name, String(calls), String(failed), ...times, peak, String(connections), counts.join(' ')]))
  for (const fault of faults) console.log(`  FOUND: ${fault}`)
  findings += faults.length
}
console.log(findings === 0 ? 'no well-behaved call failed' : `${findings} findings`)
process.exit(findings === 0 ? 0 : 1)
