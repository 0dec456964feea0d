#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { attacks } from './attacks/index.mjs'
import { build } from './gateway.mjs'
import { measure } from './under-attack.mjs'

const usage = `usage: npm run attack -- [--seconds 8] [--only TEXT] [--workers 1]

Attacks a gateway that has its default settings, one attack after the other, while wrk calls it as a well-behaved caller does.
Attackers call from other addresses than wrk (127.0.0.2 and on). No call of wrk may fail.

  --seconds N   how long each attack takes
  --only TEXT   only attacks whose names contain this: ${attacks.map(({ name }) => name).join(', ')}
  --workers N   the gateway's workers

Exit codes: 0 no call failed, 1 some did or the gateway ended, 2 a mistake in the command.`

const quiet = { name: 'no attack', connections: 0, steps: () => [] }

function fail(message, code) {
  ;(code === 0 ? console.log : console.error)(message)
  process.exit(code)
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        seconds: { type: 'string', default: '8' },
        only: { type: 'string', default: '' },
        workers: { type: 'string', default: '1' },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) fail(usage, 0)
    const [seconds, workers] = [Number(values.seconds), Number(values.workers)]
    if (!(seconds >= 1) || !(workers >= 1)) fail(`--seconds and --workers must be 1 or more\n\n${usage}`, 2)
    const chosen = attacks.filter(({ name }) => name.includes(values.only))
    if (chosen.length === 0) fail(`there is no attack "${values.only}"\n\n${usage}`, 2)
    return { seconds, workers, chosen }
  } catch (error) {
    return fail(`${error.message}\n\n${usage}`, 2)
  }
}

const heads = ['attack', 'calls', 'failed', 'p50', 'p99', 'peak RSS', 'connections', "attackers' statuses"]
const widths = [24, 8, 8, 9, 9, 9, 12]
const row = cells => cells.map((cell, at) => (at === 0 ? cell.padEnd(24) : cell.padStart(widths[at] ?? 0))).join('  ')

const { seconds, workers, chosen } = readArguments()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
build()

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
