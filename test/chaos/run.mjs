#!/usr/bin/env node
// npm run chaos [-- --short] [--write] [--only TEXT] [--tries 3]
// Real processes share limits in a real Redis that is broken in every way there is; every call is held against its limit.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { faults } from './faults.mjs'
import { measure } from './measure.mjs'
import { headLine, rowLine, writeTable } from './report.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = 'usage: npm run chaos [-- --short] [--write] [--only TEXT] [--tries 3]'

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
        tries: { type: 'string', default: '3' },
        help: { type: 'boolean', default: false },
      },
    })
    if (values.help) fail(usage, 0)
    const all = values.short ? faults.filter(({ isShort }) => isShort) : faults
    const chosen = all.filter(({ name }) => !values.only || name.includes(values.only))
    if (chosen.length === 0) fail(`there is no fault of "${values.only}"; ${usage}`, 2)
    if (values.write && chosen.length < faults.length) fail(`--write takes all faults; ${usage}`, 2)
    return { ...values, chosen }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

const { chosen, write, tries } = readArguments()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
const tsc = `${root}node_modules/typescript/bin/tsc`
const built = spawnSync(process.execPath, [tsc, '-b'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
if (built.status !== 0) fail('tsc -b failed', 1)
console.log(headLine())
const results = []
for (const fault of chosen) {
  const result = await measure(fault, Number(tries))
  console.log(rowLine(result))
  results.push(result)
}
if (write) writeTable(`${root}docs/reliability.md`, results)
if (results.some(({ missed }) => missed.length > 0)) process.exitCode = 1
