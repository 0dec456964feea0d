import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { configurations, faulty } from './gateway.mjs'
import { themes } from './plan/themes.mjs'
import { targets } from './targets.mjs'

const usage = `usage: npm run long -- fuzz [--minutes 10] [--rounds N] [--seed N] [--round N] [--workers N] [--filter NAME] [--tls] [--target NAME]
                       [--theme NAME] [--short] [--replay FILE] [--keep-on]

Fuzzes the gateway over raw sockets, in front of a hostile service and a well-behaved one, and the ports of diana serve. After each
round the process must be alive, have met no error of its own (in its output or in diana_internal_errors_total), hold nothing of
callers who have left, and serve a new caller at once; well-behaved callers must never notice.

  --minutes N    stop after so long; 10 unless --rounds is given
  --rounds N     stop after so many rounds
  --seed N       the same seed makes the same rounds; random unless given
  --round N      the number of the first round; 0 unless given
  --workers N    only with so many workers (1 or 2); both in turn unless given
  --filter NAME  only with these filters: ${[...new Set(configurations.map(({ filter }) => filter))].join(', ')}
  --tls          only with TLS
  --target NAME  only this: gateway, or a port of diana serve: ${Object.keys(targets).join(', ')}
  --theme NAME   only rounds of one kind: ${themes.map(({ name }) => name).join(', ')}
  --short        a few rounds that are always the same: what npm test runs
  --replay FILE  the round that a finding was written to
  --keep-on      go on after a finding

Exit codes: 0 nothing found, 1 a finding, 2 a mistake in the command.`

const text = { type: 'string' }
const flag = { type: 'boolean', default: false }

function fail(message) {
  console.error(`${message}\n\n${usage}`)
  process.exit(2)
}

/** The options of the command line, or the end of the process with its usage. */
export function readOptions() {
  const values = parse()
  if (values.help) {
    console.log(usage)
    process.exit(0)
  }
  const numbers = ['minutes', 'rounds', 'seed', 'round', 'workers'].map(name => {
    const given = values[name] === undefined ? undefined : Number(values[name])
    if (given !== undefined && !(given >= 0)) fail(`--${name} must be a number, not "${values[name]}"`)
    return [name, given]
  })
  const { workers, ...bounds } = Object.fromEntries(numbers)
  const possible = values.filter === faulty.filter ? [faulty] : configurations
  const chosen = possible.filter(
    one =>
      one.workers === (workers ?? one.workers) &&
      one.filter === (values.filter ?? one.filter) &&
      (!values.tls || one.isTls) &&
      (one.target ?? 'gateway') === (values.target ?? one.target ?? 'gateway'),
  )
  if (chosen.length === 0) fail('no configuration has these workers and filters')
  if (values.theme && !themes.some(({ name }) => name === values.theme)) fail(`there is no theme "${values.theme}"`)
  const { theme, short, 'keep-on': keepsOn } = values
  return { ...bounds, theme, short, keepsOn, chosen, replay: values.replay && readReplay(values.replay) }
}

function parse() {
  try {
    const numbers = { minutes: text, rounds: text, seed: text, round: text, workers: text }
    const names = { filter: text, theme: text, replay: text, target: text }
    const flags = { short: flag, tls: flag, 'keep-on': flag, help: flag }
    return parseArgs({ options: { ...numbers, ...names, ...flags } }).values
  } catch (error) {
    return fail(error.message)
  }
}

function readReplay(path) {
  try {
    const { configuration, plan } = JSON.parse(readFileSync(path, 'utf8'))
    return { configuration, plan }
  } catch (error) {
    return fail(`${path} cannot be replayed (${error.message}): give a file that a finding was written to`)
  }
}
