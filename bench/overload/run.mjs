// npm run bench -- overload [--write]: a service of 400 answers a second at three times that, bare, with @fastify/under-pressure, with fixed limits and with
// an adaptive one; and what the adaptive limit costs a call.
import { fork } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { callFor, summary } from './callers.mjs'
import { costPerCall } from './cost.mjs'
import { drawRuns } from './plot.mjs'

const CAPACITY = 400
const SECONDS = 12
const kinds = ['bare', 'under-pressure', 'fixed limit of 200', 'fixed limit of 20', 'diana adaptive']
const page = fileURLToPath(new URL('../../docs/overload.md', import.meta.url))
const image = fileURLToPath(new URL('../../docs/images/overload.svg', import.meta.url))

async function measure(kind) {
  const child = fork(fileURLToPath(new URL('front.mjs', import.meta.url)), [kind], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const limits = []
  const port = await new Promise(resolve =>
    child.on('message', said => (said.port ? resolve(said.port) : limits.push(said))),
  )
  try {
    const idle = summary(await callFor(port, 0.3 * CAPACITY, 3), 500, 3000)
    const began = Date.now()
    const calls = await callFor(port, 3 * CAPACITY, SECONDS, 1 / 6)
    const found = limits.filter(({ at }) => at >= began).map(({ at, limit }) => [at - began, limit])
    return { kind, idle, load: summary(calls, 2000, SECONDS * 1000), calls, limits: found }
  } finally {
    child.kill()
  }
}

/** The table as Markdown. */
function tableOf(runs) {
  const lines = [
    '| in front of the service | goodput | p99 | p99 / unloaded | critical calls answered | refused | no answer in 1 s |',
    '|---|---|---|---|---|---|---|',
  ]
  for (const { kind, idle, load } of runs) {
    const part = value => `${((100 * value) / load.offered).toFixed(1)} %`
    const cells = [
      kind,
      `${((100 * load.goodput) / CAPACITY).toFixed(1)} %`,
      // no call was answered in time
      Number.isNaN(load.p99) ? 'none' : `${load.p99.toFixed(0)} ms`,
      Number.isNaN(load.p99) ? 'none' : (load.p99 / idle.p99).toFixed(2),
    ]
    lines.push(
      `| ${[...cells, `${(100 * load.critical).toFixed(2)} %`, part(load.refused), part(load.lost)].join(' | ')} |`,
    )
  }
  return lines.join('\n')
}

export async function benchOverload({ write }) {
  const runs = []
  for (const kind of kinds) runs.push(await measure(kind))
  const table = tableOf(runs)
  const { adaptiveNs, concurrencyNs } = costPerCall()
  const cost = `A call costs ${adaptiveNs.toFixed(0)} ns in an adaptive limit and ${concurrencyNs.toFixed(0)} ns in a fixed one.`
  console.log(`${table}\n\n${cost}`)
  if (!write) return
  const text = readFileSync(page, 'utf8')
  const measured = `<!-- measured -->\n\n${table}\n\n${cost}\n\n<!-- /measured -->`
  writeFileSync(page, text.replace(/<!-- measured -->[\s\S]*<!-- \/measured -->/, measured))
  writeFileSync(image, drawRuns(runs, SECONDS, CAPACITY))
}
