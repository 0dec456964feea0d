// Sends calls through a gateway that logs them for replay, replays the log and compares call by call:
// `npm run long -- replay-equality --calls 1000000`. It ends with 1 if any decision differs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { calls: { type: 'string', default: '20000' }, keep: { type: 'string' } } })
const calls = Number(values.calls)
const diana = new URL('../../packages/gateway/bin/diana.mjs', import.meta.url).pathname
const folder = await mkdtemp(join(tmpdir(), 'diana-equality-'))

const service = http.createServer((request, response) => {
  request.resume()
  const status = request.url.startsWith('/fail') ? 500 : 200
  // a few take long enough to hold a slot
  if (request.url.startsWith('/slow')) setTimeout(() => response.writeHead(status).end('slow'), 3)
  else response.writeHead(status).end('ok')
})
await new Promise(resolve => service.listen(0, '127.0.0.1', resolve))

const free = http.createServer()
await new Promise(resolve => free.listen(0, '127.0.0.1', resolve))
const { port } = free.address()
await new Promise(resolve => free.close(resolve))

const rules = `
identify: { account: [header:x-account-id] }
trustProxy: 1
rules:
  - { id: whole-system, limit: 4000/s }
  - { id: per-ip, by: ip, limit: 100/s, algorithm: token-bucket, burst: 150 }
  - { id: per-account, by: account, limit: [900/s, 40/20ms], algorithm: sliding-window }
  - { id: writes, match: { path: /orders/**, method: POST }, by: [account, resource], limit: 60/s, algorithm: sliding-log }
  - { id: failures, match: { path: /fail }, by: account, limit: 50/s, algorithm: fixed-window, countWhen: 5xx }
  - { id: costly, match: { path: /costly }, by: account, limit: 1000/s, cost: { from: header:x-cost, most: 20 } }
  - { id: blocked, match: { path: /blocked }, by: account, limit: 30/s, block: 1s }
  - { id: slow, match: { path: /slow }, by: account, limit: 3, algorithm: concurrency }
  - { id: watched, by: ip, limit: 20/s, whenFull: shadow }
gateway:
  listen: { host: 127.0.0.1, port: ${port} }
  routes: [{ to: "http://127.0.0.1:${service.address().port}" }]
  accessLog: { to: ./access.log, replay: digest }
`
await writeFile(join(folder, 'diana.yaml'), rules)
const gateway = spawn(process.execPath, [diana, 'start', '--config', join(folder, 'diana.yaml')], {
  cwd: folder,
  stdio: ['ignore', 'inherit', 'inherit'],
})

const agent = new http.Agent({ keepAlive: true, maxSockets: 32 })
const targets = ['/a', '/orders/1', '/orders/2', '/fail', '/costly', '/blocked', '/slow', '/b?x=1']
let sent = 0
const seen = new Map()

function send() {
  const number = sent++
  const path = targets[Math.floor(Math.random() * targets.length)]
  const method = path.startsWith('/orders') && number % 2 === 0 ? 'POST' : 'GET'
  const headers = {
    'x-forwarded-for': `198.51.100.${number % 40}`,
    'x-account-id': `account-${number % 7}`,
    'x-cost': String(number % 25),
  }
  return new Promise(resolve => {
    const request = http.request({ host: '127.0.0.1', port, path, method, headers, agent }, response => {
      seen.set(response.statusCode, (seen.get(response.statusCode) ?? 0) + 1)
      response.resume().on('end', resolve)
    })
    request.on('error', error => {
      seen.set(error.code, (seen.get(error.code) ?? 0) + 1)
      resolve()
    })
    request.end()
  })
}

async function untilReady() {
  for (let tries = 0; tries < 200; tries++) {
    const isUp = await new Promise(resolve => {
      http
        .get({ host: '127.0.0.1', port, path: '/up' }, response => response.resume().on('end', () => resolve(true)))
        .on('error', () => resolve(false))
    })
    if (isUp) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error('the gateway did not start')
}

let exitCode = 1
try {
  await untilReady()
  const lanes = Array.from({ length: 32 }, async () => {
    while (sent < calls) await send()
  })
  await Promise.all(lanes)
  agent.destroy()
  gateway.kill('SIGTERM')
  await once(gateway, 'exit')
  console.log('answers:', Object.fromEntries(seen))
  const replay = spawn(
    process.execPath,
    [diana, 'replay', join(folder, 'diana.yaml'), join(folder, 'access.log'), '--verify'],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  )
  ;[exitCode] = await once(replay, 'exit')
} finally {
  if (gateway.exitCode === null) gateway.kill('SIGKILL')
  service.close()
  if (values.keep === undefined) await rm(folder, { recursive: true })
  else console.log('kept:', folder)
}
process.exitCode = exitCode
