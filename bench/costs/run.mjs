#!/usr/bin/env node
// npm run long -- costs --streams 10000
// Streams of 1 MB through a gateway that settles their costs, and through one that does not: throughput, CPU and memory. Both run
// throughout and are called in turn, so that a busy machine is busy for both. Ends with 1 if a mark is missed.
import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

const { values } = parseArgs({
  options: { streams: { type: 'string', default: '10000' }, compared: { type: 'string', default: '2000' } },
})
/** So many are sent through the gateway that settles; of these, the first are compared with as many through the other. */
const streams = Number(values.streams)
const compared = Math.min(streams, Number(values.compared))
const CONNECTIONS = 8
const SLICE_SECONDS = 2
const LEAST_SHARE = 0.97
/** Megabytes by which the heap may differ between the first tenth of the streams and the last. */
const MOST_GROWTH_MB = 8

const script = fileURLToPath(new URL('process.mjs', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'diana-costs-'))
const lua = join(folder, 'post.lua')
const body = JSON.stringify({
  model: 'any',
  max_tokens: 900,
  stream: true,
  messages: [{ role: 'user', content: 'x'.repeat(400) }],
})
writeFileSync(
  lua,
  `wrk.method = 'POST'
wrk.body = [[${body}]]
wrk.headers['Content-Type'] = 'application/json'
function done(summary) io.stderr:write(string.format('%d %d %d', summary.requests, summary.duration, summary.errors.status + summary.errors.read)) end
`,
)

async function start(...args) {
  const child = fork(script, args, { execArgv: ['--expose-gc'], env: { ...process.env, NODE_ENV: 'production' } })
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the process of ${args[0]} ended`)
  })
  ended.catch(() => undefined)
  const [port] = await Promise.race([once(child, 'message'), ended])
  const figures = async () => {
    child.send('figures')
    return (await Promise.race([once(child, 'message'), ended]))[0]
  }
  return { port, figures, stop: () => child.disconnect(), requests: 0, us: 0, cpuUs: 0, heaps: [] }
}

async function slice(gateway) {
  const before = await gateway.figures()
  const args = [
    '-t1',
    `-c${CONNECTIONS}`,
    `-d${SLICE_SECONDS}s`,
    '-s',
    lua,
    `http://127.0.0.1:${gateway.port}/v1/chat/completions`,
  ]
  const { stderr } = await promisify(execFile)('wrk', args)
  const [requests, us, errors] = stderr.trim().split(' ').map(Number)
  if (errors > 0) throw new Error(`${errors} streams failed`)
  const after = await gateway.figures()
  gateway.requests += requests
  gateway.us += us
  gateway.cpuUs += after.cpuUs - before.cpuUs
  console.error(`${gateway.requests} streams ${gateway === settling ? 'with settling' : 'without'}`)
  gateway.heaps.push({ streams: gateway.requests, heap: after.heapUsed + after.external, rss: after.rss })
}

const service = await start('service')
const upstream = `http://127.0.0.1:${service.port}`
const without = await start('without', upstream)
const settling = await start('settling', upstream)
try {
  for (const gateway of [without, settling]) await slice(gateway)
  for (const gateway of [without, settling]) Object.assign(gateway, { requests: 0, us: 0, cpuUs: 0, heaps: [] })
  for (let turn = 0; settling.requests < compared; turn++) {
    // each begins every other turn
    for (const gateway of turn % 2 === 0 ? [without, settling] : [settling, without]) await slice(gateway)
  }
  const figures = throughput()
  while (settling.requests < streams) await slice(settling)
  report(figures)
} finally {
  for (const one of [service, without, settling]) one.stop()
  rmSync(folder, { recursive: true, force: true })
}

function perSecond({ requests, us }) {
  return requests / (us / 1e6)
}

function cpu({ cpuUs, requests }) {
  return cpuUs / requests
}

function throughput() {
  for (const [name, gateway] of Object.entries({ without, settling })) {
    const rate = `${perSecond(gateway).toFixed(1)} a second, ${cpu(gateway).toFixed(0)} µs of CPU each`
    console.log(`${name}: ${gateway.requests} streams of 1 MB, ${rate}`)
  }
  return { share: perSecond(settling) / perSecond(without), cpuShare: cpu(settling) / cpu(without) }
}

function report({ share, cpuShare }) {
  const megabytes = bytes => `${(bytes / 1_048_576).toFixed(1)} MB`
  const [first, last] = [settling.heaps[0], settling.heaps.at(-1)]
  for (const { streams: count, heap, rss } of [first, last]) {
    console.log(`settling, after ${count} streams: heap ${megabytes(heap)}, resident ${megabytes(rss)}`)
  }
  const growth = (last.heap - first.heap) / 1_048_576
  const percent = part => `${(part * 100).toFixed(1)} %`
  const marks = [
    [
      `throughput with settling ${percent(share)} of without (CPU ${percent(cpuShare)}); mark: 97 % or more`,
      share >= LEAST_SHARE,
    ],
    [`heap grew by ${growth.toFixed(1)} MB; mark: ${MOST_GROWTH_MB} MB or less`, growth <= MOST_GROWTH_MB],
  ]
  for (const [text, isMet] of marks) console.log(`${isMet ? 'met   ' : 'MISSED'} ${text}`)
  if (!marks.every(([, isMet]) => isMet)) process.exitCode = 1
}
