import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { ServiceManager } from './service-manager.ts'

/** Node cannot receive datagrams of a Unix socket either. Prints one line for each message, and closes what it carries. */
const receiver = `
import array, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('listens', flush=True)
while True:
    data, ancillary, _, _ = s.recvmsg(4096, 4096)
    for level, kind, content in ancillary:
        if kind == socket.SCM_RIGHTS:
            fds = array.array('i'); fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
            for fd in fds: os.close(fd)
    print(data.decode().strip().replace(chr(10), ' '), flush=True)
`

const closing: (() => void)[] = []
afterEach(() => {
  for (const close of closing.splice(0)) close()
})

function has(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

async function start(env: NodeJS.ProcessEnv = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-notify-'))
  const path = join(folder, 'notify')
  const child = spawn('python3', ['-c', receiver, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  closing.push(() => {
    child.kill()
    rmSync(folder, { recursive: true })
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', piece => {
    text += piece
  })
  await once(child.stdout, 'data')
  const complaints: string[] = []
  const manager = new ServiceManager({
    env: { PATH: process.env.PATH, NOTIFY_SOCKET: path, ...env },
    pid: process.pid,
    printError: line => complaints.push(line),
  })
  const messages = () => text.split('\n').filter(line => line !== '' && line !== 'listens' && line !== 'BARRIER=1')
  return { manager, messages, complaints }
}

describe.runIf(has('python3') && has('systemd-notify'))('systemd notification', () => {
  it('systemd is notified that the process is ready, is replaced, and ends, in this order', async () => {
    const { manager, messages, complaints } = await start()
    void manager.ready()
    void manager.reloading()
    void manager.stillReady()
    await manager.stopping()
    await expect
      .poll(messages)
      .toEqual([
        `READY=1 MAINPID=${process.pid}`,
        expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/),
        'READY=1',
        'STOPPING=1',
      ])
    expect(complaints).toEqual([])
  })

  it('systemd is notified twice per watchdog period until the process ends', async () => {
    const { manager, messages } = await start({ WATCHDOG_USEC: '100000', WATCHDOG_PID: String(process.pid) })
    await manager.ready()
    await expect.poll(() => messages().filter(line => line === 'WATCHDOG=1').length).toBeGreaterThan(2)
    await manager.stopping()
    await expect.poll(() => messages().at(-1)).toBe('STOPPING=1')
  })

  it('systemd is not notified for the watchdog of another process', async () => {
    const { manager, messages } = await start({ WATCHDOG_USEC: '20000', WATCHDOG_PID: '1' })
    await manager.ready()
    await manager.stillReady()
    expect(messages().filter(line => line === 'WATCHDOG=1')).toEqual([])
  })
})

it('without a service manager nothing is started or printed', async () => {
  const complaints: string[] = []
  const printError = (line: string): void => void complaints.push(line)
  const manager = new ServiceManager({ env: { PATH: '/nowhere' }, pid: 1, printError })
  await manager.ready()
  await manager.stopping()
  expect(complaints).toEqual([])
})

it('without systemd-notify one warning names the remedy', async () => {
  const complaints: string[] = []
  const printError = (line: string): void => void complaints.push(line)
  const manager = new ServiceManager({
    env: { PATH: '/nowhere', NOTIFY_SOCKET: '/nowhere/notify' },
    pid: 1,
    printError,
  })
  await manager.ready()
  await manager.stopping()
  expect(complaints).toEqual([expect.stringContaining('install it, or use Type=exec')])
})
