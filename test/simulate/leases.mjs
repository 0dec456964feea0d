// npm run long -- simulate leases: fleets that lease permits, in virtual time; --write makes docs/scale.md of it.
import { ALGORITHMS, fleets, LOADS, largest, manyKeys, marks, randomFleet } from './lease-cases.mjs'
import { simulateLeases } from './lease-fleet.mjs'
import { writeScalePage } from './scale-page.mjs'

const DIST = '../../packages/limiter/dist/'

async function parts() {
  const [book, store, denials, charge, list] = await Promise.all(
    [
      'stores/leases/lease-book.js',
      'testing/stores/leasing-store.js',
      'stores/failover/deny-cache.js',
      'stores/shared-charge.js',
      'algorithms/index.js',
    ].map(path => import(DIST + path)),
  )
  return { ...book, ...store, ...denials, ...charge, ...list }
}

const percent = number => `${(number * 100).toFixed(1)} %`

function line({ processes, limit, algorithm, load, keys = 1 }, { over, used, asked, perSecond, busyMs }) {
  const head = `${processes} processes, ${limit}/s${keys > 1 ? ` each of ${keys} keys` : ''}, ${algorithm}, load ${load}`
  const share = used === undefined ? '' : `, ${percent(used)} used`
  const cost = `${asked.toFixed(4)} requests a call, ${Math.round(perSecond)} a second, ${Math.round(busyMs)} ms of Redis`
  return `${head}: ${over} over${share}, ${cost}`
}

/** Runs all cases; returns what they gave, and how many marks were missed. */
export async function simulateScale({ seeds, write, small, root }) {
  const classes = await parts()
  const run = async one => {
    const result = await simulateLeases(classes, { seed: 1, ...one })
    console.log(line(one, result))
    return { ...one, ...result }
  }
  const ofFleets = []
  for (const fleet of small ? fleets.slice(0, 3) : fleets) {
    for (const algorithm of ALGORITHMS)
      for (const load of LOADS) ofFleets.push(await run({ ...fleet, algorithm, load }))
  }
  const ofLargest = []
  for (const load of small ? [] : largest.loads) ofLargest.push(await run({ ...largest, load }))
  const ofKeys = []
  for (const one of small ? manyKeys.slice(0, 1) : manyKeys)
    ofKeys.push(await run({ algorithm: 'token-bucket', ...one }))
  const faults = { seeds, over: 0, calls: 0 }
  for (let seed = 1; seed <= seeds; seed++) {
    const one = randomFleet(seed)
    const { over, calls } = await simulateLeases(classes, one)
    faults.calls += calls
    faults.over = Math.max(faults.over, over)
    if (over > 0) console.log(`seed ${seed}: ${over} over; ${JSON.stringify(one)}`)
    if (seed % 20 === 0) console.error(`${seed} of ${seeds} random fleets`)
  }
  console.log(`${seeds} random fleets with faults, ${faults.calls} calls: ${faults.over} over`)
  const missed = missedOf(ofFleets, ofLargest, faults)
  for (const text of missed) console.log(`missed: ${text}`)
  if (write) writeScalePage(root, { ofFleets, ofLargest, ofKeys, faults, missed })
  return missed.length
}

function missedOf(ofFleets, ofLargest, faults) {
  const missed = []
  const all = [...ofFleets, ...ofLargest]
  for (const one of all) if (one.over > 0) missed.push(`${one.over} over: ${line(one, one)}`)
  if (faults.over > 0) missed.push(`${faults.over} over with faults`)
  for (const one of all) {
    if (one.load > 1 && one.used < marks.used)
      missed.push(`${percent(one.used)} used (mark ${percent(marks.used)}): ${line(one, one)}`)
    if (one.processes === 5 && one.limit === 10_000 && one.asked > marks.askedBy5) {
      missed.push(`${one.asked.toFixed(4)} requests a call (mark ${marks.askedBy5}): ${line(one, one)}`)
    }
    // a million calls a second
    if (one.processes === largest.processes && one.load <= 1 && one.busyMs > 1000)
      missed.push(`more than one Redis carries: ${line(one, one)}`)
  }
  return missed
}
