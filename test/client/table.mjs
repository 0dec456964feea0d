// npm run long -- client: many clients against servers with limits, and what became of their calls.
import { parseArgs } from 'node:util'
import { runFleet } from './fleet.mjs'
import { servers } from './servers.mjs'
import { simulate } from './simulate.mjs'

const { values } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    seed: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) {
  console.log(`npm run long -- client [--short] [--seed 7]

Clients that do not know of each other (1, 10, 50) use one limit, in virtual time, against servers of Diana and servers that report
their limits as GitHub, OpenAI and Shopify do; then 50 clients that share a pace in Redis, against a server of Diana over HTTP.
The figures begin after three windows, in which the clients find out how many they are; of the seeds 1 to 3 the worst ones are shown.
Exit 1 if more than 0.1 % of the calls are refused, or less than 95 % of a quota is used.
--seed: this seed alone; --short: 1 and 10 clients, fewer windows, no fleet`)
} else await main()

async function main() {
  console.log('| server | clients | calls | refused | share of the quota | busiest hundredth of a window |')
  console.log('|---|---|---|---|---|---|')
  for (const [name, server] of Object.entries(servers)) {
    for (const clients of values.short ? [1, 10] : [1, 10, 50]) {
      const windows = windowsOf(server) / (values.short ? 2 : 1)
      const runs = []
      for (const seed of values.seed === undefined ? [1, 2, 3] : [Number(values.seed)]) {
        runs.push(await simulate(server, { clients, windows, warmUp: 3, seed }))
      }
      print(name, clients, runs)
    }
  }
  if (!values.short) print('Diana over HTTP, one pace in Redis', 50, [await runFleet({ clients: 50, seconds: 20 })])
}

function windowsOf({ windowMs }) {
  if (windowMs > 1_000_000) return 8
  return windowMs < 30_000 ? 60 : 20
}

function print(name, clients, runs) {
  const of = (what, which) => Math[which](...runs.map(run => run[what]))
  const [calls, ratio, used, peak] = [of('calls', 'min'), of('ratio', 'max'), of('used', 'min'), of('peak', 'max')]
  if (ratio > 0.001 || used < 0.95) process.exitCode = 1
  const cells = [
    name,
    clients,
    calls,
    `${of('refused', 'max')} (${(100 * ratio).toFixed(2)} %)`,
    `${(100 * used).toFixed(1)} %`,
  ]
  console.log(`| ${cells.join(' | ')} | ${peak.toFixed(1)} × even |`)
}
