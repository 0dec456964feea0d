#!/usr/bin/env node
// Real processes share limits in a real Redis that is broken in every way there is; every call is held against its limit.
import { fileURLToPath } from 'node:url'
import { buildPackages, flag, mistake, readArguments, text, wholeNumber } from '../helpers/command.mjs'
import { faults } from './faults.mjs'
import { measure } from './measure.mjs'
import { headLine, rowLine, summaryLines, writeTable } from './report.mjs'
import { startSpinning } from './spin.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = `usage: npm run long -- chaos [--short] [--write] [--only TEXT]... [--runs 1] [--tries 3] [--busy] [--json]

Real processes share limits in a real Redis, which is broken and mended; every call is held against its limit.

  --only TEXT   only faults whose names contain this, in any case; may be given several times
  --short       only the few that npm test runs
  --runs N      each fault so many times; the worst is shown, and a summary at the end
  --tries N     a run that misses a mark while the machine was busy is made again, up to so many times
  --busy        keeps all cores busy meanwhile: how long things take is not judged then
  --json        prints a line of JSON for each fault
  --write       writes the table to docs/reliability.md

Exit codes: 0 every row meets the marks, 1 one does not, 2 a mistake in the command.`

const shapes = {
  short: flag,
  write: flag,
  only: { type: 'string', multiple: true, default: [] },
  tries: text('3'),
  runs: text('1'),
  busy: flag,
  json: flag,
}
const { chosen, write, tries, runs, busy, json } = readArguments(usage, shapes, values => {
  const all = values.short ? faults.filter(({ isShort }) => isShort) : faults
  const isNamed = (name, text) => name.toLowerCase().includes(text.toLowerCase())
  const unknown = values.only.find(text => !all.some(({ name }) => isNamed(name, text)))
  if (unknown !== undefined) mistake(`there is no fault of "${unknown}"`)
  const chosen = all.filter(({ name }) => values.only.length === 0 || values.only.some(text => isNamed(name, text)))
  if (values.write && chosen.length < faults.length) mistake('--write takes all faults')
  const [runs, tries] = [wholeNumber('runs', values.runs), wholeNumber('tries', values.tries)]
  return { ...values, runs, tries, chosen }
})

buildPackages()
const stopSpinning = busy ? startSpinning() : undefined
if (!json) console.log(headLine())
const results = []
for (const fault of chosen) {
  const result = await measure(fault, { tries, runs, isBusy: busy })
  console.log(json ? JSON.stringify(result) : rowLine(result))
  results.push(result)
}
await stopSpinning?.()
if (!json) console.log(`${results.reduce((sum, { traced }) => sum + traced, 0)} events checked against the model`)
if (runs > 1 && !json) console.log(`\n${summaryLines(results).join('\n')}`)
if (write) writeTable(`${root}docs/reliability.md`, results)
if (results.some(({ missed }) => missed.length > 0)) process.exitCode = 1
