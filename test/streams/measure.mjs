import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { cpuMicrosecondsOf } from '../../bench/servers/process-cpu.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const program = fileURLToPath(new URL('../../packages/gateway/bin/diana.mjs', import.meta.url))
const startMs = 60_000
const callers = 16

/** How many files a gateway has open with so many streams: two each, and some of its own. */
export function filesFor(streams) {
  return 2 * streams + 500
}

/** Opens half of the streams as server-sent events and half as WebSockets, and calls the gateway before, meanwhile and after. */
export async function measureStreams({ streams, slices, calls }) {
  const closing = []
  try {
    const service = child('service.mjs', [], closing)
    const [servicePort] = await once(service, 'message')
    const gateway = await startGateway(servicePort, filesFor(streams), closing)
    const agent = new Agent({ keepAlive: true, maxSockets: callers })
    closing.push(() => agent.destroy())
    const rounds = async () => {
      const costs = []
      for (let slice = 0; slice < slices; slice++) costs.push(await callCost(gateway, agent, calls))
      return costs
    }
    await rounds()
    const before = await rounds()
    const bytesBefore = memoryOf(gateway.pid)
    const half = Math.floor(streams / 2)
    const clients = [
      child('client.mjs', [gateway.port, 'events', half, 10], closing),
      child('client.mjs', [gateway.port, 'websocket', streams - half, 60], closing),
    ]
    const served = sum(await Promise.all(clients.map(async client => (await once(client, 'message'))[0].served)))
    const bytesPerStream = (memoryOf(gateway.pid) - bytesBefore) / streams
    const meanwhile = await rounds()
    const open = sum(await Promise.all(clients.map(async client => (await ask(client, 'count')).open)))
    const endedAt = performance.now()
    const ended = sum(await Promise.all(clients.map(async client => (await ask(client, 'end')).ended)))
    const endMs = performance.now() - endedAt
    const after = await rounds()
    return { served, open, ended, endMs, bytesPerStream, without: [...before, ...after], meanwhile }
  } finally {
    for (const close of closing.reverse()) await close()
  }
}

function child(file, args, closing) {
  const process = fork(join(here, file), args.map(String), { execArgv: [] })
  closing.push(async () => {
    if (process.exitCode !== null) return
    process.kill()
    await once(process, 'exit')
  })
  return process
}

async function ask(process, question) {
  process.send(question)
  return (await once(process, 'message'))[0]
}

async function startGateway(servicePort, files, closing) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-streams-'))
  const config = join(folder, 'diana.json')
  const route = { to: `http://127.0.0.1:${servicePort}`, connections: { max: 50_000 }, timeouts: { body: '10m' } }
  const gateway = { admin: { port: 0 }, shutdown: { timeout: '5s' }, routes: [route] }
  writeFileSync(config, JSON.stringify({ rules: [{ id: 'whole', limit: '50000000/m' }], gateway }))
  const command = [globalThis.process.execPath, program, 'start', '--config', config, '--port', '0']
  const process = spawn('/bin/sh', ['-c', `ulimit -n ${files} && exec "$@"`, 'sh', ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [process.stdout, process.stderr]) {
    stream.setEncoding('utf8').on('data', piece => {
      output += piece
    })
  }
  closing.push(async () => {
    if (process.exitCode === null) {
      process.kill('SIGTERM')
      await once(process, 'exit')
    }
    rmSync(folder, { recursive: true })
  })
  const until = performance.now() + startMs
  while (!output.includes('Dashboard: ')) {
    if (process.exitCode !== null || performance.now() > until) throw new Error(`the gateway did not start: ${output}`)
    await pause(20)
  }
  return { pid: process.pid, port: Number(/http:\/\/[\d.]+:(\d+)/.exec(output)[1]) }
}

/** The CPU that the gateway spends on an ordinary call, in microseconds. */
async function callCost({ pid, port }, agent, calls) {
  const before = await cpuMicrosecondsOf(pid)
  let left = calls
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (left-- > 0) await call(port, agent)
    }),
  )
  return ((await cpuMicrosecondsOf(pid)) - before) / calls
}

function call(port, agent) {
  return new Promise((resolve, reject) => {
    const sent = request({ port, host: '127.0.0.1', path: '/orders', agent }, response => {
      response.on('error', reject).on('end', () => {
        if (response.statusCode === 200) resolve()
        else reject(new Error(`an ordinary call was answered with ${response.statusCode}`))
      })
      response.resume()
    })
    sent.on('error', reject).end()
  })
}

/** The resident memory of a process, in bytes. */
function memoryOf(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) * 1024
}

function sum(numbers) {
  return numbers.reduce((total, one) => total + one, 0)
}
