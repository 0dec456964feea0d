#!/usr/bin/env node
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { configurations } from './gateway.mjs'
import { planRound } from './plan.mjs'
import { Session } from './session.mjs'
import { themes } from './themes.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = `usage: npm run fuzz -- [--minutes 10] [--rounds N] [--seed N] [--workers N] [--filter NAME] [--theme NAME] [--replay FILE]

Fuzzes the gateway over raw sockets, in front of a hostile service and a well-behaved one. After each round the gateway must
be alive, hold nothing of callers who have left, and serve a new caller at once; well-behaved callers must never notice.

  --minutes N    stop after so long; 10 unless --rounds is given
  --rounds N     stop after so many rounds
  --seed N       the same seed makes the same rounds; random unless given
  --round N      the number of the first round; 0 unless given
  --workers N    only with so many workers (1 or 2); both in turn unless given
  --filter NAME  only with these filters: ${[...new Set(configurations.map(({ filter }) => filter))].join(', ')}
  --theme NAME   only rounds of one kind: ${themes.map(({ name }) => name).join(', ')}
  --replay FILE  the round that a finding was written to
  --keep-on      go on after a finding

Exit codes: 0 nothing found, 1 a finding, 2 a mistake in the command.`

/** A gateway goes on for so many rounds, then the next configuration has its turn. */
const roundsPerGateway = 12

function fail(message, code) {
  ;(code === 0 ? console.log : console.error)(message)
  process.exit(code)
}

function readArguments() {
  try {
    const text = { type: 'string' }
    const flag = { type: 'boolean', default: false }
    const { values } = parseArgs({
      options: {
        minutes: text,
        rounds: text,
        seed: text,
        round: text,
        workers: text,
        filter: text,
        theme: text,
        replay: text,
        'keep-on': flag,
        help: flag,
      },
    })
    if (values.help) fail(usage, 0)
    for (const name of ['minutes', 'rounds', 'seed', 'round', 'workers']) {
      if (values[name] !== undefined && !(Number(values[name]) >= 0)) fail(`--${name} must be a number\n\n${usage}`, 2)
    }
    const chosen = configurations.filter(
      ({ workers, filter }) => workers === Number(values.workers ?? workers) && filter === (values.filter ?? filter),
    )
    if (chosen.length === 0) fail(`there is no configuration with these workers and filters\n\n${usage}`, 2)
    if (values.theme && !themes.some(({ name }) => name === values.theme))
      fail(`there is no theme "${values.theme}"\n\n${usage}`, 2)
    return { ...values, chosen }
  } catch (error) {
    return fail(`${error.message}\n\n${usage}`, 2)
  }
}

function readReplay(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    return fail(`${path} cannot be replayed (${error.message}): give a file that a finding was written to`, 2)
  }
}

function build() {
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const built = spawnSync(process.execPath, [tsc, '-b'], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (built.status !== 0) fail('tsc -b failed', 1)
}

function report(plan, configuration, findings) {
  const file = join(
    tmpdir(),
    `diana-fuzz-${plan.seed}-${plan.round}-${configuration.workers}-${configuration.filter}.json`,
  )
  writeFileSync(file, JSON.stringify({ configuration, plan }, undefined, 1))
  console.log(`FOUND in round ${plan.round} (${plan.theme}) of seed ${plan.seed}, with ${nameOf(configuration)}:`)
  for (const { kind, text } of findings) console.log(`  ${kind}: ${text}`)
  console.log(`  again: npm run fuzz -- --replay ${file}`)
}

const nameOf = ({ workers, filter }) => `${workers} worker${workers > 1 ? 's' : ''}, filters: ${filter}`

const options = readArguments()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1))
const replayed = options.replay === undefined ? undefined : readReplay(options.replay)
build()

const seed = Number(options.seed ?? Math.floor(Math.random() * 1e9))
const mostRounds = replayed ? 1 : Number(options.rounds ?? Number.POSITIVE_INFINITY)
const until = performance.now() + Number(options.minutes ?? (options.rounds ? 1e6 : 10)) * 60_000
const first = Number(options.round ?? 0)
const totals = {}
let session
let found = 0
let rounds = 0
if (!replayed) console.log(`seed ${seed}`)
while (rounds < mostRounds && performance.now() < until) {
  const plan = replayed?.plan ?? planRound(seed, first + rounds, options.theme)
  const configuration =
    replayed?.configuration ?? options.chosen[Math.floor(rounds / roundsPerGateway) % options.chosen.length]
  if (session?.configuration !== configuration) {
    await session?.close()
    session = await Session.start(configuration)
    console.log(`with ${nameOf(configuration)}`)
  }
  const { findings, counts, line } = await session.play(plan)
  rounds++
  for (const [name, count] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + count
  console.log(`round ${plan.round} ${plan.theme.padEnd(10)} ${line}`)
  if (findings.length === 0) continue
  found++
  report(plan, configuration, findings)
  await session.close()
  session = undefined
  if (!options['keep-on']) break
}
await session?.close()
const told = Object.entries({ rounds, ...totals }).map(([name, count]) => `${name} ${count}`)
console.log(`${told.join(', ')}; ${found === 0 ? 'nothing was found' : `${found} rounds with findings`}`)
process.exit(found === 0 ? 0 : 1)
