// docs/scale.md and its plots, from the results of a simulation.
import { writeFileSync } from 'node:fs'
import { CALL_US, LEASE_US } from './lease-fleet.mjs'
import { drawLines } from './plot.mjs'

const percent = number => `${(number * 100).toFixed(1)} %`

function table(rows) {
  const head =
    '| processes | limit | algorithm | load | calls over | limit used | requests a call | requests a second | of one Redis |\n|--:|--:|---|--:|--:|--:|--:|--:|--:|'
  const lines = rows.map(({ processes, limit, algorithm, load, over, used, asked, perSecond, busyMs }) => {
    return `| ${processes} | ${limit.toLocaleString('en')}/s | ${algorithm} | ${load} | ${over} | ${percent(used)} | ${asked.toFixed(4)} | ${Math.round(perSecond).toLocaleString('en')} | ${percent(busyMs / 1000)} |`
  })
  return [head, ...lines].join('\n')
}

function keysTable(rows) {
  const head =
    '| processes | keys | calls a second | calls over | requests a call | of one Redis |\n|--:|--:|--:|--:|--:|--:|'
  const lines = rows.map(({ processes, keys, calls, seconds, over, asked, busyMs }) => {
    return `| ${processes} | ${keys.toLocaleString('en')} | ${Math.round(calls / seconds).toLocaleString('en')} | ${over} | ${asked.toFixed(4)} | ${percent(busyMs / 1000)} |`
  })
  return [head, ...lines].join('\n')
}

function plots(root, ofFleets) {
  const of5 = ofFleets.filter(({ processes, limit }) => processes === 5 && limit === 10_000)
  const algorithms = [...new Set(of5.map(({ algorithm }) => algorithm))]
  const lines = read =>
    algorithms.map(name => ({
      name,
      points: of5.filter(({ algorithm }) => algorithm === name).map(one => [one.load, read(one)]),
    }))
  writeFileSync(
    `${root}docs/images/scale-requests.svg`,
    drawLines({
      title: 'Requests to the store for each call: 5 processes, 10,000/s',
      x: 'load, as a multiple of the limit',
      y: 'requests a call',
      lines: lines(({ asked }) => asked),
    }),
  )
  const bucket = ofFleets.filter(({ algorithm, limit }) => algorithm === 'token-bucket' && limit >= 10_000)
  const loads = [...new Set(bucket.map(({ load }) => load))]
  const bySize = loads.map(load => ({
    name: `load ${load}`,
    points: bucket.filter(one => one.load === load).map(one => [Math.log10(one.processes), one.asked]),
  }))
  writeFileSync(
    `${root}docs/images/scale-fleets.svg`,
    drawLines({
      title: 'Requests to the store for each call, token bucket',
      x: 'processes',
      y: 'requests a call',
      lines: bySize,
      ticksX: [
        [0, '1'],
        [Math.log10(5), '5'],
        [Math.log10(20), '20'],
        [2, '100'],
      ],
    }),
  )
}

export function writeScalePage(root, { ofFleets, ofLargest, ofKeys, faults, missed }) {
  plots(root, ofFleets)
  const text = `# How far it scales

What leases ([distributed.md](distributed.md#leases)) save and cost, in fleets larger than a test machine: a simulation in virtual time. It runs
the code of production (the leases of each process, the reservations of the store and the algorithms) against a simulated network:
messages take ${'0.25 to 0.75 ms'} unless a case states otherwise, may be lost, repeated or overtaken, and processes may be cut off,
crash, or have clocks that run at different speeds. \`npm run long -- simulate leases --write\` writes this page; the same seeds give the same figures.

"Over" is by how many calls a limit was exceeded in the worst interval, whenever each call was decided between its start and its
end. "Requests" are calls that the store decides and requests of leases together. "Of one Redis" is the part of the time for which
the thread of one Redis is busy, if a call that it decides takes ${CALL_US} µs and a request of a lease ${LEASE_US} µs. These are assumptions on the safe side: in
[the benchmarks](benchmarks.md) a call takes 2 to 4 µs of Redis in batches and about 35 µs alone, and a request of a lease does about twice as much.

## One busy key

![Requests to the store for each call, by load](images/scale-requests.svg)

![Requests to the store for each call, by the size of the fleet](images/scale-fleets.svg)

${table(ofFleets)}

A load of 0.95 is 95 % of the limit, offered unevenly. If a sliding window is nearly used up and a process has few calls for each report, it
does not lease: reports that come late would count calls as of a later moment, and waste some of the limit. Then it asks for every call,
as without leases.

## A thousand processes

${ofLargest.length > 0 ? table(ofLargest) : ''}

Each process asks the store for the first calls of a key, until it has seen that the key is busy; these first calls are in the
figures.

## Many keys

The n-th key is called in proportion to 1/n, and each has a limit of its own, a token bucket of ${ofKeys[0].limit}/s. Only keys that a process meets more than about 20
times a second are leased; calls of all others ask the store.

${keysTable(ofKeys)}

## Faults

${faults.seeds} random fleets of 1 to 10 processes, with up to 5 % of the messages lost, a tenth of them repeated, partitions of up to 1.5 s, crashes
without a word, and clocks that differ in speed by up to 5 %: ${faults.calls.toLocaleString('en')} calls, **${faults.over} over a limit**.

## Targets

${missed.length === 0 ? 'All targets are met: no call over a limit; at least 98 % of the limit used if more is offered; at most 0.03 requests a call with five processes and 10,000/s; a thousand processes with a million calls a second on one Redis.' : `Missed:\n\n${missed.map(text => `- ${text}`).join('\n')}`}
`
  writeFileSync(`${root}docs/scale.md`, text)
}
