#!/usr/bin/env node
// npm run long -- restarts [--rounds N] [--workers N] [--timeout SECONDS] [--json]
// Reloads, restarts and ends a gateway under load, with uploads, streams and WebSockets open: no call may fail.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { buildPackages } from '../helpers/command.mjs'
import { Callers } from './callers.mjs'
import { startService } from './service.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const usage = 'usage: npm run long -- restarts [--rounds N] [--workers N] [--timeout SECONDS] [--json]'
const startMs = 60_000
// how late a process of a busy machine may be
const graceMs = 3000

function fail(message, code) {
  console.error(message)
  process.exit(code)
}

function readArguments() {
  const number = { type: 'string' }
  const options = { rounds: number, workers: number, timeout: number, json: { type: 'boolean', default: false } }
  try {
    const { values } = parseArgs({ options })
    const read = (name, usual) => {
      const text = values[name] ?? usual
      return /^[1-9]\d{0,4}$/.test(text)
        ? Number(text)
        : fail(`--${name} must be a whole number of 1 or more; ${usage}`, 2)
    }
    const workers = values.workers === undefined ? [1, 2] : [read('workers')]
    return { rounds: read('rounds', '10'), workers, timeoutMs: read('timeout', '5') * 1000, json: values.json }
  } catch (error) {
    return fail(`${error.message}; ${usage}`, 2)
  }
}

async function until(isTrue, what, ms = startMs) {
  const begun = performance.now()
  while (!(await isTrue())) {
    if (performance.now() - begun > ms) throw new Error(`${what} took longer than ${ms} ms`)
    await pause(20)
  }
  return performance.now() - begun
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    // one that has ended stays in the table of processes until its parent has looked
    return existsSync('/proc/self/stat') ? !/\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')) : true
  } catch {
    return false
  }
}

async function scenario(workers, { rounds, timeoutMs }) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-restarts-'))
  const service = await startService()
  const config = join(folder, 'diana.yaml')
  const write = version => {
    const gateway = {
      listen: { port: 0 },
      admin: { port: 0 },
      shutdown: { timeout: `${timeoutMs}ms` },
      answerHeaders: { 'x-version': String(version) },
      routes: [{ to: service.url }],
    }
    writeFileSync(config, JSON.stringify({ rules: [{ id: 'all', limit: '1000000/s' }], gateway }))
  }
  write(0)
  const program = join(root, 'packages/gateway/bin/diana.mjs')
  const args = [program, 'start', '--config', config, '--workers', String(workers)]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', text => (said += text))
  let pid = child.pid
  const endedAfterMs = []
  const result = { workers, failures: [], endedAfterMs, timeoutMs }
  let callers
  try {
    await until(() => said.includes('Dashboard'), 'the start')
    const url = /listens on (\S+)/.exec(said)[1]
    callers = new Callers(url)
    await pause(300)
    for (let round = 1; round <= rounds; round++) {
      write(round)
      const version = async () => (await fetch(url)).headers.get('x-version')
      await until(async () => (await version()) === String(round), 'the reload')
      const old = pid
      process.kill(old, 'SIGUSR2')
      const successors = () => [...said.matchAll(/Process (\d+) takes the calls/g)].map(match => Number(match[1]))
      await until(() => successors().length === round, 'the restart')
      callers.mark()
      pid = successors().at(-1)
      endedAfterMs.push(await until(() => !isRunning(old), 'the end of the old process', timeoutMs + graceMs))
    }
    callers.mark({ isLast: true })
    process.kill(pid, 'SIGTERM')
    endedAfterMs.push(await until(() => !isRunning(pid), 'the end', timeoutMs + graceMs))
  } catch (error) {
    result.failures.push(`${error.message}; the gateway said: ${said.slice(-2000)}`)
  } finally {
    await callers?.stop()
    if (isRunning(pid)) process.kill(pid, 'SIGKILL')
    service.close()
    rmSync(folder, { recursive: true, force: true })
  }
  result.failures.push(...(callers?.failures ?? []))
  return { ...result, calls: callers?.counts, cutAfterMs: callers?.cutAfterMs }
}

const settings = readArguments()
buildPackages()
let failed = 0
for (const workers of settings.workers) {
  const result = await scenario(workers, settings)
  failed += result.failures.length
  if (settings.json) console.log(JSON.stringify(result))
  else {
    const { calls, endedAfterMs, failures } = result
    const names = Object.entries(calls ?? {}).map(([name, count]) => `${count} ${name}`)
    const ends = endedAfterMs.map(ms => `${(ms / 1000).toFixed(1)} s`).join(', ')
    console.log(`${workers} ${workers === 1 ? 'process' : 'workers'}: ${names.join(', ')}; ended after ${ends}`)
    for (const failure of failures.slice(0, 10)) console.log(`  failed: ${failure}`)
  }
}
process.exit(failed === 0 ? 0 : 1)
