import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeAll, expect, test, vi } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { build, call, childrenOf, type Program, startDiana } from '../../helpers/program-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const root = fileURLToPath(new URL('../../..', import.meta.url))
const rig = new GatewayRig()
const pids: number[] = []

beforeAll(build)
afterEach(async () => {
  for (const pid of pids.splice(0)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // it has ended
    }
  }
  await rig.close()
})

const document = { rules: [{ id: 'all', limit: '1000/s' }], gateway: { routes: [{ answer: { body: 'ok' } }] } }

function write(text: string = JSON.stringify(document)): string {
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, text)
  return config
}

async function start(config: string, ...args: readonly string[]): Promise<Program> {
  const program = await startDiana(['--config', config, '--admin-port', '0', ...args])
  await expect.poll(() => program.said(), { timeout: 20_000 }).toContain('Dashboard')
  pids.push(program.child.pid!)
  return program
}

test('a new process that cannot start leaves the old one in its place', async () => {
  const config = write()
  const program = await start(config)
  writeFileSync(config, 'rules: [')
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 30_000 }).toContain('No new process took over: it ended before')
  expect(program.said()).toContain('This one goes on.')
  expect(await call(program.url)).toBe('200')
  writeFileSync(config, JSON.stringify(document))
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 30_000 }).toMatch(/Process \d+ takes the calls/)
  pids.push(Number(/Process (\d+)/.exec(program.said())![1]))
  expect(await call(program.url)).toBe('200')
})

test('a process that is told to end while a new one starts leaves none behind', async () => {
  const program = await start(write())
  const gone = once(program.child, 'exit')
  program.child.kill('SIGUSR2')
  const children = () => readFileSync(`/proc/${program.child.pid}/task/${program.child.pid}/children`, 'utf8').trim()
  await expect.poll(children).not.toBe('')
  const successor = Number(children().split(' ')[0])
  pids.push(successor)
  program.child.kill('SIGTERM')
  await gone
  const isRunning = () =>
    existsSync(`/proc/${successor}/stat`) && !/\) Z/.test(readFileSync(`/proc/${successor}/stat`, 'utf8'))
  await expect.poll(isRunning).toBe(false)
})

test('workers that have taken over come back when all of them are killed at once', async () => {
  const program = await start(write(), '--workers', '2')
  const gone = once(program.child, 'exit')
  program.child.kill('SIGUSR2')
  await expect.poll(() => program.said(), { timeout: 60_000 }).toMatch(/Process \d+ takes the calls/)
  const pid = Number(/Process (\d+)/.exec(program.said())![1])
  pids.push(pid)
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
    const main = join(root, 'packages/gateway/bin/diana.mjs')
    // systemd names the process that it has started
    const script = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'
    const args = [process.execPath, main, 'start', '--config', write(), '--admin-port', 'off', '--workers', workers]
    const child = spawn('sh', ['-c', script, 'sh', ...args], { stdio: ['ignore', 'pipe', 'inherit', fd] })
    pids.push(child.pid!)
    server.close()
    await expect.poll(() => call(`http://127.0.0.1:${port}`), { timeout: 30_000 }).toBe('200')
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
})
