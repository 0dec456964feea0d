#!/usr/bin/env node
// Fleets of several sizes call at an even pace while Redis is killed and comes back empty: who is refused, and who would have been anyway.
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { buildPackages, flag, mistake, readArguments, text, wholeNumber } from '../helpers/command.mjs'
import { overBound } from './bounds.mjs'
import { moment } from './fleet/clock.mjs'
import { startFleet } from './fleet/fleet.mjs'
import { startRedis } from './redis.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const page = `${root}docs/reliability.md`
const usage = `usage: npm run long -- chaos-restart [--processes 2,4,8] [--before 90] [--away 15] [--after 90] [--only TEXT] [--write]
       npm run long -- chaos-restart --virtual

Fleets of several sizes call at an even pace, all at the same time. Redis is killed after --before seconds, and started empty --away
seconds later. The table shows which part of the calls was refused before, during and after, and what a store that never fails would have
refused of the same calls. It takes as many seconds as the three numbers add up to.

  --only TEXT   only rows whose algorithm and limit contain this
  --write       writes the table to docs/reliability.md
  --virtual     prints the table of a simulation in virtual time, with no Redis, in about two minutes; takes no other option

Exit codes: 0 every row meets the marks, 1 one does not, 2 a mistake in the command.`

/** Until all processes are back, each keeps to its share. */
const RETURNED_MS = 2000
/** Calls that were refused although a store that never fails would have admitted them, as a part of all calls after the return. */
const MOST_FALSE = 0.01
const PROGRESS_MS = 15_000
/** All processes have started after this time, and know of each other. */
const START_MS = 5000
const START_MS_EACH = 1000
const BEGIN = '<!-- restart table -->'
const END = '<!-- /restart table -->'
const [second, minute, hour, day] = [1000, 60_000, 3_600_000, 86_400_000]

const { sizes, beforeMs, awayMs, afterMs, only, write, isVirtual } = readArguments(
  usage,
  {
    processes: text('2,4,8'),
    before: text('90'),
    away: text('15'),
    after: text('90'),
    only: text(''),
    write: flag,
    virtual: flag,
  },
  values => {
    const sizes = values.processes.split(',').map(one => wholeNumber('processes', one, 16))
    const [beforeMs, awayMs, afterMs] = ['before', 'away', 'after'].map(
      name => wholeNumber(name, values[name], 3600) * 1000,
    )
    if (beforeMs + afterMs < 20_000) mistake('--before and --after must be 20 seconds together')
    if (values.write && values.only) mistake('--write takes all rows')
    if (values.virtual && (values.write || values.only)) mistake('--virtual takes no other option')
    return { sizes, beforeMs, awayMs, afterMs, only: values.only, write: values.write, isVirtual: values.virtual }
  },
)
const wholeMs = beforeMs + awayMs + afterMs

/** Prints the table of virtual time, and ends. */
async function simulate() {
  const { startVitest } = await import('vitest/node')
  const include = ['test/helpers/fleet/restart-table.ts']
  await startVitest('test', [], {
    root,
    config: false,
    include,
    watch: false,
    reporters: ['dot'],
    testTimeout: 3_600_000,
  })
  process.exit()
}

/** Limits of up to a minute get a part of the limit in each period; longer ones get it within the whole run. */
function subjectOf({ algorithm = 'sliding-window', count, periodMs, unit, load, lease, align, burst }) {
  const options = { ...(lease && { lease }), ...(align && { align }), ...(burst && { burst }) }
  const id = [algorithm, count, unit, load, ...Object.values(options)].join('-').replaceAll('.', '_')
  const rule = { id, limit: `${count}/${unit}`, algorithm, ...options, match: { path: `/${id}` } }
  const name = [algorithm, ...Object.entries(options).map(([key, value]) => `${key}: ${value}`)].join(', ')
  return {
    id,
    name,
    rule,
    algorithm,
    count,
    periodMs,
    load,
    options,
    everyMs: Math.min(periodMs, wholeMs) / (count * load),
  }
}

const perMinute = { count: 300, periodMs: minute, unit: 'm' }
const all = [
  ...[0.3, 0.67, 0.9, 1.5].map(load => subjectOf({ ...perMinute, load })),
  subjectOf({ ...perMinute, load: 0.67, lease: 'off' }),
  subjectOf({ ...perMinute, count: 3000, load: 0.67 }),
  subjectOf({ count: 20, periodMs: second, unit: 's', load: 0.67 }),
  ...[0.67, 0.9, 1.5].map(load => subjectOf({ count: 600, periodMs: hour, unit: 'h', load })),
  ...[0.67, 0.9].map(load => subjectOf({ count: 600, periodMs: day, unit: 'd', load })),
  ...['sliding-log', 'fixed-window', 'token-bucket'].flatMap(algorithm =>
    [0.67, 0.9].map(load => subjectOf({ ...perMinute, algorithm, load })),
  ),
  ...[0.67, 0.9].map(load => subjectOf({ ...perMinute, algorithm: 'leaky-bucket', burst: 20, load })),
  subjectOf({ ...perMinute, algorithm: 'fixed-window', align: 'first-call', load: 0.9 }),
]
const subjects = all.filter(({ name, rule }) => `${name} ${rule.limit}`.includes(only))

async function measure() {
  const redis = await startRedis()
  const fleets = []
  try {
    const beginsAt = moment() + START_MS + sizes.reduce((sum, processes) => sum + processes, 0) * START_MS_EACH
    for (const processes of sizes) {
      const store = { redis: `redis://127.0.0.1:${redis.port}`, prefix: `restart-${processes}` }
      const limiter = { store, rules: subjects.map(({ rule }) => rule) }
      const offered = subjects.map(({ id, everyMs }) => ({ id, everyMs }))
      const jobOf = () => ({ limiter, subjects: offered, beginsAt })
      fleets.push(await startFleet({ processes, jobOf, program: 'even-worker.mjs' }))
    }
    const progress = setInterval(() => {
      const passedMs = moment() - beginsAt
      const redisIs = passedMs > beforeMs && passedMs < beforeMs + awayMs ? 'Redis is away' : 'Redis answers'
      console.error(`${Math.round(passedMs / 1000)} of ${wholeMs / 1000} s: ${redisIs}`)
    }, PROGRESS_MS)
    await pause(beginsAt + beforeMs - moment())
    const killedAt = moment()
    await redis.stop()
    await pause(awayMs)
    await redis.start({ isEmpty: true })
    const backAt = moment() + RETURNED_MS
    await pause(beginsAt + wholeMs - moment())
    clearInterval(progress)
    const stopped = []
    for (const fleet of fleets) stopped.push(await fleet.stop())
    const lagMs = Math.max(...stopped.flat().map(one => one.lagMs))
    return {
      reports: stopped.map(fleet => fleet.map(({ calls }) => calls)),
      lagMs,
      phases: [Number.NEGATIVE_INFINITY, killedAt, backAt, Number.POSITIVE_INFINITY],
    }
  } finally {
    for (const fleet of fleets) fleet.end()
    await redis.close()
  }
}

/** The calls that one store which never fails would have refused. */
function refusedByHealthy(calls, { algorithm, count, periodMs, options }, algorithms) {
  const { meter } = algorithms.find(({ name }) => name === algorithm)
  const counts = meter({ count, periodMs }, options)
  const state = new Float64Array(counts.slots)
  // windows that are aligned with the clock begin when those of Redis do
  const offsetUs = Date.now() * 1000 - moment() * 1000
  return calls.filter(({ start }) => {
    const now = Math.round(offsetUs + start * 1000)
    const fits = counts.delay(state, 0, now, 1) === 0
    if (fits) counts.take(state, 0, now, 1, 0)
    return !fits
  })
}

function judge(subject, reports, phases, algorithms) {
  const calls = reports
    .flatMap(({ start, end, allowed }) =>
      start.map((at, i) => ({ start: at, end: end[i], isAllowed: allowed[i] === 1 })),
    )
    .sort((a, b) => a.start - b.start)
  const inPhases = some =>
    [0, 1, 2].map(phase => some.filter(({ start }) => start >= phases[phase] && start < phases[phase + 1]).length)
  const admitted = calls.filter(({ isAllowed }) => isAllowed)
  const refused = inPhases(calls.filter(({ isAllowed }) => !isAllowed))
  const healthy = inPhases(refusedByHealthy(calls, subject, algorithms))
  const offered = inPhases(calls)
  const over = subject.algorithm.startsWith('sliding-')
    ? Math.max(0, overBound(admitted, { calls: subject.count, periodMs: subject.periodMs }))
    : undefined
  const isMissed = subject.load < 1 && refused[2] - healthy[2] > offered[2] * MOST_FALSE
  return { offered, refused, healthy, over, isMissed }
}

const percent = (part, whole) => (whole === 0 ? '–' : `${Math.round((part / whole) * 1000) / 10} %`)

function cellsOf({ subject, processes, offered, refused, healthy, over }) {
  const share = counts => counts.map((count, phase) => percent(count, offered[phase])).join(' / ')
  const load = `${Math.round(subject.load * 100)} %`
  const calls = offered.reduce((sum, count) => sum + count, 0)
  return [subject.name, subject.rule.limit, load, processes, calls, share(refused), share(healthy), over ?? '–'].map(
    String,
  )
}

const heads = [
  'algorithm',
  'limit',
  'asked for',
  'processes',
  'calls',
  'refused before / during / after',
  'healthy store',
  'over',
]

if (isVirtual) await simulate()
buildPackages()
const { algorithms } = await import('../../packages/limiter/dist/algorithms/index.js')
const { reports, lagMs, phases } = await measure()
const rows = subjects.flatMap((subject, at) =>
  sizes.map((processes, fleet) => {
    const of = reports[fleet].map(report => report[at])
    return { subject, processes, ...judge(subject, of, phases, algorithms) }
  }),
)
const table = [heads, heads.map(() => '---'), ...rows.map(cellsOf)].map(cells => `| ${cells.join(' | ')} |`).join('\n')
console.log(table)
console.log(`The processes were late by up to ${Math.round(lagMs)} ms.`)
const missed = rows.filter(({ isMissed }) => isMissed)
for (const { subject, processes } of missed)
  console.log(`Missed: ${subject.name} ${subject.rule.limit}, ${processes} processes`)
if (missed.length > 0) process.exitCode = 1
if (write) {
  const [before, rest] = readFileSync(page, 'utf8').split(BEGIN)
  const away = `Redis was killed after ${beforeMs / 1000} s and started empty ${awayMs / 1000} s later; the whole run took ${wholeMs / 1000} s, and the processes were late by up to ${Math.round(lagMs)} ms.`
  writeFileSync(page, `${before}${BEGIN}\n\n${table}\n\n${away}\n\n${END}${rest.split(END)[1]}`)
}
