#!/usr/bin/env node
// Three gateways with two workers each share limits in a real Redis, which is broken while wrk calls all three.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildPackages, mistake, readArguments, text } from '../helpers/command.mjs'
import { overBound } from './bounds.mjs'
import { faults } from './faults.mjs'
import { moment } from './fleet/clock.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const script = fileURLToPath(new URL('paths.lua', import.meta.url))
const usage = `usage: npm run long -- chaos-gateways [--only TEXT] [--seconds 8]

Three gateways with two workers each, in front of one service, with limits in one Redis. wrk calls all three, and Redis is
broken for two seconds in the middle. What reaches the service is held against the limits.

Exit codes: 0 nothing was over and no call failed, 1 otherwise, 2 a mistake in the command.`

const GATEWAYS = 3
const WORKERS = 2
const CONNECTIONS = 6
const FAULT_AFTER_MS = 2500

const hour = 3_600_000
const subjects = [
  { rule: { id: 'quota', limit: '300/h' }, bound: { calls: 300, periodMs: hour } },
  { rule: { id: 'window', limit: '60/s' }, bound: { calls: 60, periodMs: 1000 } },
  { rule: { id: 'bucket', limit: '60/s', algorithm: 'token-bucket', burst: 30 }, bound: { perMs: 0.06, burst: 30 } },
]

const { seconds, chosen } = readArguments(usage, { only: text(''), seconds: text('8') }, values => {
  const seconds = Number(values.seconds)
  if (!(seconds >= 6)) mistake('--seconds must be 6 or more')
  const possible = faults.filter(({ scene, processes, isDownAtStart, shiftMs, isStalling, callersMove, hasPace }) => {
    const isOfFleet = processes !== 3 || isDownAtStart || shiftMs || isStalling || callersMove || hasPace
    return scene.name === 'single' && !isOfFleet
  })
  const chosen = possible.filter(({ name }) => name.includes(values.only))
  if (chosen.length === 0) mistake(`there is no fault of "${values.only}"`)
  return { seconds, chosen }
})

async function startService() {
  const arrivals = []
  const server = createServer((request, response) => {
    // the call was decided between its start and now
    arrivals.push({ id: request.url.slice(1), start: Number(request.headers['x-started']), end: moment() })
    response.end('served')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    arrivals,
    url: `http://127.0.0.1:${server.address().port}`,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function startGateway(store, to) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-chaos-'))
  const config = join(folder, 'diana.json')
  const rules = subjects.map(({ rule }) => ({ ...rule, match: { path: `/${rule.id}` } }))
  writeFileSync(config, JSON.stringify({ store, rules, gateway: { admin: { port: 0 }, routes: [{ to }] } }))
  const args = ['packages/gateway/bin/diana.mjs', 'start', '--config', config, '--port', '0', '--workers', `${WORKERS}`]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = () => child.kill('SIGKILL')
  process.once('exit', end)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', piece => {
      output += piece
    })
  }
  while (!output.includes('Dashboard: ')) {
    if (child.exitCode !== null) throw new Error(`the gateway did not start: ${output}`)
    await pause(50)
  }
  return {
    url: /http:\/\/[\d.]+:\d+/.exec(output)[0],
    async close() {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      const late = setTimeout(end, 5000)
      await ended
      clearTimeout(late)
      process.removeListener('exit', end)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function load(url, seconds) {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '-T', '2s', '-s', script, url]
  const { stdout } = await promisify(execFile)('wrk', args)
  const [calls, lost, other, p99Ms] = /MEASURED (.*)/.exec(stdout)[1].split(' ').map(Number)
  return { calls, failed: lost + other, p99Ms }
}

async function liveThrough(fault, seconds) {
  const scene = await fault.scene()
  const service = await startService()
  const { store } = scene.limiter
  const gateways = []
  try {
    for (let i = 0; i < GATEWAYS; i++)
      gateways.push(await startGateway({ ...store, fleet: GATEWAYS * WORKERS }, service.url))
    const loads = Promise.all(gateways.map(({ url }) => load(url, seconds)))
    await pause(FAULT_AFTER_MS)
    await fault.begin(scene)
    await pause(fault.lastsMs)
    await fault.end(scene)
    const measured = await loads
    const over = subjects.map(({ rule: { id }, bound }) => {
      const calls = service.arrivals.filter(one => one.id === id)
      return { id, passed: calls.length, over: Math.max(0, overBound(calls, bound)) }
    })
    return {
      calls: measured.reduce((sum, { calls }) => sum + calls, 0),
      failed: measured.reduce((sum, { failed }) => sum + failed, 0),
      p99Ms: Math.max(...measured.map(({ p99Ms }) => p99Ms)),
      over,
    }
  } finally {
    for (const gateway of gateways) await gateway.close()
    service.close()
    await scene.close()
  }
}

buildPackages()
console.log(`${'fault'.padEnd(50)}     calls  failed       p99  passed and over`)
for (const fault of chosen) {
  const { calls, failed, p99Ms, over } = await liveThrough(fault, seconds)
  const told = over.map(one => `${one.id} ${one.passed}${one.over > 0 ? ` (${one.over} over)` : ''}`).join(', ')
  const cells = [
    fault.name.padEnd(50),
    `${calls}`.padStart(8),
    `${failed}`.padStart(6),
    `${p99Ms.toFixed(0)} ms`.padStart(8),
  ]
  console.log([...cells, told].join('  '))
  if (failed > 0 || over.some(one => one.over > 0)) process.exitCode = 1
}
