#!/usr/bin/env node
// npm run bench [-- TOPIC…] [--rounds N] [--json FILE] [--write] [--check]
// Each round measures every subject once, each in a process of its own, so that nothing one does (the garbage it leaves,
// the shapes it teaches the compiler) helps or hurts another. Medians over the rounds, with their spread.
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { writePage } from './write-page.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const topics = readdirSync(`${here}topics`).map(file => file.replace('.mjs', ''))
const usage = `usage: npm run bench [-- ${topics.join('|')}] [--rounds N] [--json FILE] [--write] [--check]`

function fail(message, code) {
  console.error(message)
  process.exit(code)
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: 'string', default: '7' },
        json: { type: 'string' },
        write: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    const unknown = positionals.find(topic => !topics.includes(topic))
    if (unknown) fail(`there is no bench "${unknown}"; ${usage}`, 2)
    if (values.help) fail(usage, 0)
    const rounds = Number(values.rounds)
    if (!Number.isInteger(rounds) || rounds < 1) fail(`--rounds takes a whole number; ${usage}`, 2)
    return { ...values, rounds, chosen: positionals.length > 0 ? positionals : topics }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

function prepare() {
  const run = (command, args, cwd) => {
    if (spawnSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] }).status !== 0) {
      fail(`${command} ${args.join(' ')} failed in ${cwd}`, 1)
    }
  }
  if (!existsSync(`${here}node_modules`)) run('npm', ['ci'], here)
  if (!existsSync(`${here}../node_modules`)) run('npm', ['ci'], `${here}..`)
  run('npx', ['tsc', '-b'], `${here}..`)
}

const median = values => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

async function measureTopic(topic, rounds) {
  const { cases, marks } = await import(`./topics/${topic}.mjs`)
  const samples = new Map()
  const at = (one, subject) => `${one.name}\n${subject}`
  for (let round = 0; round < rounds; round++) {
    for (const one of cases) {
      for (const subject of one.subjects) {
        process.stderr.write(`\r\u001b[Kround ${round + 1}/${rounds}  ${one.name}: ${subject}`)
        const args = ['--expose-gc', `${here}measure.mjs`, topic, one.name, subject]
        const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: here })
        samples.set(at(one, subject), [...(samples.get(at(one, subject)) ?? []), JSON.parse(stdout)])
      }
    }
  }
  process.stderr.write('\r\u001b[K')
  const results = cases.flatMap(one =>
    one.subjects.map(subject => {
      const taken = samples.get(at(one, subject))
      const values = taken.map(({ value }) => value)
      const cpuNs = taken[0].cpuNs === undefined ? undefined : median(taken.map(sample => sample.cpuNs))
      const spread = [Math.min(...values), Math.max(...values)]
      return { topic, case: one.name, unit: one.unit, subject, value: median(values), spread, cpuNs }
    }),
  )
  return { topic, results, marks: marks.map(mark => judge(mark, results)) }
}

function judge(mark, results) {
  const valueBy = subject => results.find(result => result.case === mark.case && result.subject === subject).value
  const value = valueBy(mark.ours)
  const most = mark.most ?? valueBy(mark.theirs) * mark.times
  const asked = mark.most === undefined ? `≤ ${mark.times.toFixed(2)} × ${mark.theirs}` : `≤ ${mark.most}`
  const reached = mark.most === undefined ? (value / valueBy(mark.theirs)).toFixed(2) : value.toFixed(0)
  return { case: mark.case, ours: mark.ours, asked, reached, met: value <= most }
}

function print({ results, marks }) {
  for (const name of new Set(results.map(result => result.case))) {
    const rows = results.filter(result => result.case === name)
    console.log(`\n${name} (${rows[0].unit})`)
    for (const { subject, value, spread, cpuNs } of rows) {
      const cpu = cpuNs === undefined ? '' : `   cpu ${cpuNs.toFixed(0)} ns`
      const range = `${spread[0].toFixed(0)}–${spread[1].toFixed(0)}`
      console.log(`  ${subject.padEnd(36)}${value.toFixed(0).padStart(8)}   ${range.padEnd(14)}${cpu}`)
    }
  }
  console.log('\nmarks')
  for (const { met, case: name, ours, asked, reached } of marks) {
    console.log(`  ${met ? 'met   ' : 'MISSED'}  ${ours}: ${reached}, asked ${asked}   (${name})`)
  }
}

const options = readArguments()
prepare()
const measured = []
for (const topic of options.chosen) {
  const one = await measureTopic(topic, options.rounds)
  print(one)
  measured.push(one)
}
if (options.json) {
  const { version, arch, platform } = process
  writeFileSync(options.json, `${JSON.stringify({ node: version, platform, arch, measured }, undefined, 2)}\n`)
}
if (options.write) writePage(measured, options.rounds)
if (options.check && measured.some(({ marks }) => marks.some(({ met }) => !met))) process.exit(1)
