#!/usr/bin/env node
// Real processes share limits in a real Redis that is broken in every way there is; every call is held against its limit.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { faults } from './faults.mjs'
import { measure } from './measure.mjs'
import { headLine, rowLine, summaryLines, writeTable } from './report.mjs'
import { startSpinning } from './spin.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = `usage: npm run chaos -- [--short] [--write] [--only TEXT]... [--runs 1] [--tries 3] [--busy] [--json]

Real processes share limits in a real Redis, which is broken and mended; every call is held against its limit.

  --only TEXT   only faults whose names contain this, in any case; may be given several times
  --short       only the few that npm test runs
  --runs N      each fault so many times; the worst is shown, and a summary at the end
  --tries N     a run that misses a mark while the machine was busy is made again, up to so many times
  --busy        keeps all cores busy meanwhile: how long things take is not judged then
  --json        prints a line of JSON for each fault
  --write       writes the table to docs/reliability.md

Exit codes: 0 every row meets the marks, 1 one does not, 2 a mistake in the command.`

function fail(message, code) {
  ;(code === 0 ? console.log : console.error)(message)
  process.exit(code)
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        short: { type: 'boolean', default: false },
        write: { type: 'boolean', default: false },
        only: { type: 'string', multiple: true, default: [] },
        tries: { type: 'string', default: '3' },
        runs: { type: 'string', default: '1' },
        busy: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) fail(usage, 0)
    const all = values.short ? faults.filter(({ isShort }) => isShort) : faults
    const isNamed = (name, text) => name.toLowerCase().includes(text.toLowerCase())
    const unknown = values.only.find(text => !all.some(({ name }) => isNamed(name, text)))
    if (unknown !== undefined) fail(`there is no fault of "${unknown}"\n\n${usage}`, 2)
    const chosen = all.filter(({ name }) => values.only.length === 0 || values.only.some(text => isNamed(name, text)))
    if (values.write && chosen.length < faults.length) fail(`--write takes all faults\n\n${usage}`, 2)
    const [runs, tries] = [Number(values.runs), Number(values.tries)]
    if (![runs, tries].every(number => Number.isInteger(number) && number >= 1))
      fail(`--runs and --tries must be 1 or more\n\n${usage}`, 2)
    return { ...values, runs, tries, chosen }
  } catch (error) {
    return fail(`${error.message}\n\n${usage}`, 2)
  }
}

const { chosen, write, tries, runs, busy, json } = readArguments()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
const tsc = `${root}node_modules/typescript/bin/tsc`
const built = spawnSync(process.execPath, [tsc, '-b'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
if (built.status !== 0) fail('tsc -b failed', 1)
const stopSpinning = busy ? startSpinning() : undefined
if (!json) console.log(headLine())
const results = []
for (const fault of chosen) {
  const result = await measure(fault, { tries, runs, isBusy: busy })
  console.log(json ? JSON.stringify(result) : rowLine(result))
  results.push(result)
}
await stopSpinning?.()
if (runs > 1 && !json) console.log(`\n${summaryLines(results).join('\n')}`)
if (write) writeTable(`${root}docs/reliability.md`, results)
if (results.some(({ missed }) => missed.length > 0)) process.exitCode = 1
