import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { stringify } from 'yaml'
import { freePort } from '../../helpers/free-port.mjs'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { build, childrenOf, dianaProgram, startProgram } from '../../helpers/program-rig.ts'

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 })

const patient = { timeout: 20_000 }
const rig = new GatewayRig()

beforeAll(build)
afterEach(() => rig.close())

async function start(accessLog: object, ...args: readonly string[]) {
  const { url } = await rig.serve()
  return await startProgram(rig, { gateway: { accessLog, routes: [{ to: url }] } }, args)
}

async function callAll(url: string, paths: readonly string[]): Promise<void> {
  const left = [...paths]
  const one = async (): Promise<void> => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) {
      // without keep-alive, so that every worker gets some
      await (await fetch(url + path, { headers: { connection: 'close' } })).text()
    }
  }
  await Promise.all([one(), one(), one(), one()])
}

function pathsIn(...files: readonly string[]): string[] {
  return files
    .flatMap(file => readFileSync(file, 'utf8').split('\n').slice(0, -1))
    .map(line => (JSON.parse(line) as { path: string }).path)
}

const numbered = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, at) => `/${prefix}/${at}`)

describe('a log file of several workers', () => {
  test('a log file of several workers has one whole line per call, also while it is renamed, and the metrics are the sum of all workers', async () => {
    const { url, child, said, folder } = await start({ to: 'access.log' }, '--workers', '2', '--admin-port', '0')
    const [path, old] = [join(folder, 'access.log'), join(folder, 'access.log.1')]
    await callAll(url, numbered(60, 'before'))
    expect(childrenOf(child.pid!).workers).toHaveLength(2)
    await expect.poll(() => pathsIn(path).length, patient).toBe(60)
    renameSync(path, old)
    child.kill('SIGHUP')
    await expect.poll(() => existsSync(path), patient).toBe(true)
    await callAll(url, numbered(60, 'after'))
    await expect.poll(() => pathsIn(path, old).length, patient).toBe(120)
    expect(pathsIn(path, old).sort()).toEqual([...numbered(60, 'before'), ...numbered(60, 'after')].sort())

    await expect.poll(said, patient).toContain('Dashboard: ')
    const admin = /Dashboard: (\S+)/.exec(said())![1]!
    const metrics = await (await fetch(`${admin}/metrics`)).text()
    expect(metrics).toMatch(/^diana_http_requests_total\{route="\/",upstream="[^"]+",method="GET",status="2xx"\} 120$/m)
    expect(metrics).toMatch(/^diana_http_request_duration_seconds_count\{route="\/",upstream="[^"]+"\} 120$/m)
    expect(metrics).toMatch(/^diana_access_log_dropped_total 0$/m)
    expect(execFileSync('promtool', ['check', 'metrics'], { input: metrics, encoding: 'utf8' })).toBe('')
  })

  test('a log file of several workers is written by a gateway in one process, which SIGUSR1 makes reopen it', async () => {
    const { url, child, folder } = await start({ to: 'access.log' }, '--admin-port', 'off')
    const [path, old] = [join(folder, 'access.log'), join(folder, 'old.log')]
    await callAll(url, ['/before'])
    await expect.poll(() => pathsIn(path), patient).toEqual(['/before'])
    renameSync(path, old)
    child.kill('SIGUSR1')
    await expect.poll(() => existsSync(path), patient).toBe(true)
    await callAll(url, ['/after'])
    await expect.poll(() => pathsIn(path), patient).toEqual(['/after'])
    expect(pathsIn(old)).toEqual(['/before'])
  })

  test('a log file that cannot be written keeps the gateway from starting, with the reason', async () => {
    await expect(start({ to: 'no-such-folder/access.log' })).rejects.toThrow(
      /accessLog\.to cannot be written.*create its folder/,
    )
  })
})

describe('standard output that is not read', () => {
  test('an unread standard output stops no call, drops and counts lines, and does not keep the gateway from ending', async () => {
    const service = await rig.serve((_request, response) => response.end('served'))
    const folder = rig.folder()
    const config = join(folder, 'diana.yaml')
    const [port, adminPort] = [await freePort(), await freePort()]
    writeFileSync(
      config,
      stringify({
        rules: [{ id: 'all', limit: '1000000/s' }],
        gateway: { accessLog: { to: 'stdout' }, routes: [{ to: service.url }] },
      }),
    )
    const args = [dianaProgram, 'start', '--config', config, '--port', String(port), '--admin-port', String(adminPort)]
    // a shell's pipe, which nobody reads; the reader ends only when it is told to
    const child = spawn('bash', ['-c', 'exec "$0" "$@" > >(exec sleep 60)', process.execPath, ...args], {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    rig.later(() => {
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {
        // all of the group has ended
      }
    })
    const url = `http://127.0.0.1:${port}`
    await expect
      .poll(
        () =>
          fetch(url).then(
            ({ status }) => status,
            () => 0,
          ),
        patient,
      )
      .toBe(200)
    const dropped = async (): Promise<number> => {
      // lines as long as they may be: 4 MiB of them wait in memory, and all further ones are dropped
      const long = 'x'.repeat(1600)
      const headers = ['-H', `Referer: ${long}`, '-H', `User-Agent: ${long}`]
      const load = await promisify(execFile)('wrk', ['-t1', '-c16', '-d1s', ...headers, `${url}/${long}`])
      expect(load.stdout).not.toMatch(/Socket errors|Non-2xx/)
      const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
      return Number(/^diana_access_log_dropped_total (\d+)$/m.exec(metrics)![1])
    }
    await expect.poll(dropped, { timeout: 40_000 }).toBeGreaterThan(0)
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    expect((await ended)[0]).toBe(0)
  })
})
