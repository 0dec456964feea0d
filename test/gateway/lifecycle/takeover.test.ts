import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { call } from '../../helpers/load.ts'
import {
  build,
  childrenOf,
  dianaProgram,
  isRunning,
  killLater,
  type Program,
  startProgram,
} from '../../helpers/program-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const rig = new GatewayRig()

beforeAll(build)
afterEach(() => rig.close())

const document = { gateway: { routes: [{ answer: { body: 'ok' } }] } }

async function start(...args: readonly string[]): Promise<Program & { readonly config: string }> {
  const program = await startProgram(rig, document, ['--admin-port', '0', ...args])
  await expect.poll(() => program.said(), { timeout: 20_000, interval: 10 }).toContain('Dashboard')
  return program
}

test('a new process that cannot start leaves the old one running', async () => {
  const program = await start()
  const good = readFileSync(program.config)
  writeFileSync(program.config, 'rules: [')
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 30_000 }).toContain('No new process took over: it ended before')
  expect(program.said()).toContain('This one goes on.')
  expect(await call(program.url)).toBe('200')
  writeFileSync(program.config, good)
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 30_000 }).toMatch(/Process \d+ takes the calls/)
  killLater(rig, Number(/Process (\d+)/.exec(program.said())![1]))
  expect(await call(program.url)).toBe('200')
})

test('a second SIGUSR2 while a new process starts is answered in the log and starts none', async () => {
  const program = await start()
  program.child.kill('SIGUSR2')
  const children = () => readFileSync(`/proc/${program.child.pid}/task/${program.child.pid}/children`, 'utf8').trim()
  await expect.poll(children).not.toBe('')
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 30_000 }).toContain('a new process is being started already')
  await expect.poll(() => program.said(), { timeout: 30_000 }).toMatch(/Process \d+ takes the calls/)
  killLater(rig, Number(/Process (\d+)/.exec(program.said())![1]))
  expect(program.said().match(/takes the calls/g)).toHaveLength(1)
  expect(await call(program.url)).toBe('200')
})

test('a process that is stopped while a new one starts leaves none behind', async () => {
  const program = await start()
  const gone = once(program.child, 'exit')
  program.child.kill('SIGUSR2')
  const children = () => readFileSync(`/proc/${program.child.pid}/task/${program.child.pid}/children`, 'utf8').trim()
  await expect.poll(children).not.toBe('')
  const successor = Number(children().split(' ')[0])
  killLater(rig, successor)
  program.child.kill('SIGTERM')
  await gone
  await expect.poll(() => isRunning(successor)).toBe(false)
})

test('workers that have taken over come back when all of them are killed at once', async () => {
  const program = await start('--workers', '2')
  const gone = once(program.child, 'exit')
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 60_000 }).toMatch(/Process \d+ takes the calls/)
  const pid = Number(/Process (\d+)/.exec(program.said())![1])
  killLater(rig, pid)
  await gone
  const { workers } = childrenOf(pid)
  for (const worker of workers) process.kill(worker, 'SIGKILL')
  await expect
    .poll(() => childrenOf(pid).workers.filter(one => !workers.includes(one)).length, { timeout: 30_000 })
    .toBe(2)
  await expect.poll(() => call(program.url), { timeout: 30_000 }).toBe('200')
})

test('a socket that systemd has opened is listened on, by one process and by workers', async () => {
  for (const workers of ['1', '2']) {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle
    const { port } = server.address() as { port: number }
    const config = join(rig.folder(), 'diana.yaml')
    writeFileSync(config, JSON.stringify({ rules: [{ id: 'all', limit: '1000/s' }], ...document }))
    // systemd names the process that it has started
    const script = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
    const args = [
      process.execPath,
      dianaProgram,
      'start',
      '--config',
      config,
      '--admin-port',
      'off',
      '--workers',
      workers,
    ]
    const child = spawn('sh', ['-c', script, 'sh', ...args], { stdio: ['ignore', 'pipe', 'inherit', fd] })
    rig.later(() => child.kill('SIGKILL'))
    server.close()
    await expect.poll(() => call(`http://127.0.0.1:${port}`), { timeout: 30_000 }).toBe('200')
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
})

test('a program that forks the gateway keeps its channel to it', async () => {
  const args = ['start', '--upstream', 'http://127.0.0.1:1', '--port', '0', '--admin-port', '0']
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, 'rules: [{ id: all, limit: 1000/s }]')
  const child = fork(dianaProgram, [...args, '--config', config], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  rig.later(() => child.kill('SIGKILL'))
  const messages: unknown[] = []
  child.on('message', message => messages.push(message))
  let said = ''
  child.stdout!.setEncoding('utf8').on('data', piece => {
    said += piece
  })
  await expect.poll(() => said, { timeout: 30_000, interval: 10 }).toContain('Dashboard')
  // what the gateway does when it is ready is over once it has answered on the port of operators
  await fetch(`${/Dashboard: (\S+)/.exec(said)![1]}/readyz`)
  expect([child.connected, messages]).toEqual([true, []])
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  expect((await ended)[0]).toBe(0)
})
