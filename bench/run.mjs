#!/usr/bin/env node
// npm run bench [-- TOPIC…] [--rounds N] [--json FILE] [--write] [--check]
// Each round measures every subject once, each in a process of its own, so that nothing one does (the garbage it leaves,
// the shapes it teaches the compiler) helps or hurts another.
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'
import { writeLua } from '../scripts/write-lua.mjs'
import { describeMachine } from './machine.mjs'
import { installNamed } from './programs.mjs'
import { print } from './report/print.mjs'
import { judge, summarise } from './report/results.mjs'
import { writePage } from './report/write-page.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const topics = ['memory', 'rules', 'filters', 'gateway', 'telemetry', 'redis', 'expiry', 'outage', 'serve']
// has a page of its own, and runs alone
const apart = 'overload'
const usage = `usage: npm run bench [-- ${topics.join('|')}|${apart}] [--rounds N] [--json FILE] [--write] [--check]`
const DEFAULT_ROUNDS = 3
// unless its case says otherwise; no other measurement takes a quarter of it
const MEASUREMENT_MS_AT_MOST = 120_000

function fail(message, code) {
  console.error(message)
  process.exit(code)
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: 'string', default: String(DEFAULT_ROUNDS) },
        json: { type: 'string' },
        write: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
    const unknown = positionals.find(topic => !topics.includes(topic) && topic !== apart)
    if (unknown) fail(`there is no bench "${unknown}"; ${usage}`, 2)
    if (values.help) fail(usage, 0)
    const rounds = Number(values.rounds)
    if (!Number.isInteger(rounds) || rounds < 1) fail(`--rounds takes a whole number; ${usage}`, 2)
    return {
      ...values,
      rounds,
      isApart: positionals.includes(apart),
      chosen: positionals.length > 0 ? topics.filter(one => positionals.includes(one)) : topics,
    }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

/** Installs what is missing and builds Diana, without which no topic can be loaded. */
function prepare() {
  const run = (command, args, cwd) => {
    if (spawnSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'inherit'] }).status !== 0) {
      fail(`${command} ${args.join(' ')} failed in ${cwd}`, 1)
    }
  }
  if (!existsSync(`${here}../node_modules`)) run('npm', ['ci'], `${here}..`)
  if (!existsSync(`${here}node_modules/.package-lock.json`)) run('npm', ['ci'], here)
  writeLua()
  run('npx', ['tsc', '-b'], `${here}..`)
}

async function measureTopic(topic, module, rounds) {
  const { cases, marks, about, charted, allOurs, measureTogether, programs = [], peers = [] } = module
  const samples = new Map(cases.flatMap(one => one.subjects.map(subject => [`${one.name}\n${subject}`, []])))
  for (const one of measureTogether ? cases : []) {
    process.stderr.write(`\r\u001b[K${topic}  ${one.name}`)
    const measured = await measureOnce(topic, one, String(rounds))
    for (const subject of one.subjects) samples.get(`${one.name}\n${subject}`).push(...measured[subject])
  }
  for (let round = 0; round < (measureTogether ? 0 : rounds); round++) {
    for (const one of cases) {
      if (round >= (one.rounds ?? rounds)) continue
      for (const subject of one.subjects) {
        process.stderr.write(`\r\u001b[K${topic}, round ${round + 1}/${rounds}  ${one.name}: ${subject}`)
        samples.get(`${one.name}\n${subject}`).push(await measureOnce(topic, one, subject))
      }
    }
  }
  process.stderr.write('\r\u001b[K')
  const results = cases.flatMap(one =>
    one.subjects.map(subject => summarise(topic, one, subject, samples.get(`${one.name}\n${subject}`))),
  )
  const machine = describeMachine(programs, peers)
  return { topic, about, charted, allOurs, machine, results, marks: marks.map(mark => judge(mark, results)) }
}

async function measureOnce(topic, { name, longestMs = MEASUREMENT_MS_AT_MOST }, subject) {
  const args = ['--expose-gc', '--max-old-space-size=6144', `${here}measure.mjs`, topic, name, subject]
  const options = { cwd: here, timeout: longestMs, env: { ...process.env, NODE_ENV: 'production' } }
  try {
    return JSON.parse((await promisify(execFile)(process.execPath, args, options)).stdout)
  } catch (error) {
    return fail(`\n${topic}, ${name}: ${subject} cannot be measured: ${error.stderr || error.message}`, 1)
  }
}

const options = readArguments()
prepare()
if (options.isApart) {
  const { benchOverload } = await import('./overload/run.mjs')
  await benchOverload(options)
  process.exit(0)
}
const loaded = await Promise.all(options.chosen.map(topic => import(`./topics/${topic}.mjs`)))
await installNamed(loaded.flatMap(({ programs = [] }) => programs)).catch(error => fail(error.message, 1))
const measured = []
for (const [i, topic] of options.chosen.entries()) {
  const one = await measureTopic(topic, loaded[i], options.rounds)
  print(one)
  measured.push(one)
}
if (options.json) writeFileSync(options.json, `${JSON.stringify(measured, undefined, 2)}\n`)
if (options.write) writePage(measured, topics)
process.exit(options.check && measured.some(({ marks }) => marks.some(({ met }) => !met)) ? 1 : 0)
