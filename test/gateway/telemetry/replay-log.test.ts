import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGateway, gatewaySection } from 'diana-gateway'
import { createLimiter } from 'diana-limiter'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { run } from '../../../packages/gateway/src/cli/run.ts'

let folder: string
const service = createServer((request, response) => {
  request.resume()
  if (request.url === '/broken') {
    response.writeHead(200, { 'content-length': 9 }).write('a')
    setImmediate(() => response.destroy())
  } else if (request.url === '/grpc') {
    response.writeHead(200, { 'content-type': 'application/grpc', 'grpc-status': '16' }).end()
  } else response.writeHead(request.url === '/fail' ? 500 : 200).end('served')
})

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'diana-replay-log-'))
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  writeFileSync(
    join(folder, 'diana.yaml'),
    `identify: { account: [header:x-account-id] }
rules:
  - { id: all, limit: 400/s }
  - { id: account, by: account, limit: 20/s, algorithm: token-bucket, burst: 30 }
  - { id: failures, match: { path: /fail }, by: account, limit: 5/m, countWhen: 5xx }
  - { id: costly, match: { path: /costly }, by: account, limit: 50/m, cost: { from: header:x-cost, most: 20 } }
  - { id: blocked, match: { path: /blocked }, by: account, limit: 5/s, block: 200ms }
  - { id: watched, limit: 30/s, whenFull: shadow }
gateway:
  routes: [{ to: "http://127.0.0.1:${(service.address() as AddressInfo).port}" }]
  accessLog: { to: access.log, replay: digest }
`,
  )
})

afterAll(() => {
  service.closeAllConnections()
  service.close()
  rmSync(folder, { recursive: true })
})

it('a replay of the access log decides each call as the gateway did, and the log names no account', async () => {
  const config = join(folder, 'diana.yaml')
  const limiter = await createLimiter({ config, sections: [gatewaySection] })
  const gateway = await createGateway({ limiter, folder })
  const url = await gateway.listen({ host: '127.0.0.1', port: 0 })
  const paths = ['/a', '/fail', '/costly', '/blocked', '/b?x=1']
  let sent = 0
  const lane = async (): Promise<void> => {
    while (sent < 600) {
      const number = sent++
      const headers = { 'x-account-id': `account-${number % 3}`, 'x-cost': String(number % 7) }
      await (await fetch(`${url}${paths[number % paths.length]}`, { headers })).arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: 8 }, lane))
  await gateway.close()
  await limiter.close()
  const log = readFileSync(join(folder, 'access.log'), 'utf8')
  expect(log).not.toContain('account-1')
  expect(log).toMatch(/"verdict":"refused","rule":"blocked"/)
  const printed: string[] = []
  const terminal = {
    input: process.stdin,
    print: (line: string) => void printed.push(line),
    printError: (line: string) => void printed.push(line),
  }
  const exitCode = await run(['replay', config, join(folder, 'access.log'), '--verify'], terminal)
  expect([exitCode, printed.filter(line => /verified|the gateway/.test(line))]).toEqual([
    0,
    ['verified: 600 calls, 0 differences'],
  ])
})

it('a replay judges calls by who ended them, as the gateway did', async () => {
  const config = join(folder, 'endings.yaml')
  const to = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
  writeFileSync(
    config,
    `rules: [{ id: guesses, limit: 4/h, countWhen: failed, resetWhen: success }]
gateway:
  routes: [{ path: /own, answer: { body: ok } }, { to: "${to}" }]
  accessLog: { to: endings.log, replay: plain }
`,
  )
  const limiter = await createLimiter({ config, sections: [gatewaySection] })
  const gateway = await createGateway({ limiter, folder })
  const url = await gateway.listen({ host: '127.0.0.1', port: 0 })
  for (const path of [
    '/grpc',
    '/broken',
    '/own',
    '/grpc',
    '/a',
    '/broken',
    '/grpc',
    '/own',
    '/grpc',
    '/own',
    '/grpc',
    '/a',
  ]) {
    const answer = await fetch(`${url}${path}`, { method: 'POST' })
    await answer.arrayBuffer().catch(() => {})
  }
  await gateway.close()
  await limiter.close()
  const log = readFileSync(join(folder, 'endings.log'), 'utf8')
  expect(log).toMatch(/"outcome":401/)
  expect(log).toMatch(/"outcome":502,"own":true/)
  expect(log).toMatch(/"status":200.*"own":true/)
  expect(log.match(/"verdict":"refused"/g)).toHaveLength(1)
  const printed: string[] = []
  const print = (line: string) => void printed.push(line)
  const terminal = { input: process.stdin, print, printError: print }
  expect(await run(['replay', config, join(folder, 'endings.log'), '--verify'], terminal)).toBe(0)
  expect(printed).toContain('verified: 12 calls, 0 differences')
})
