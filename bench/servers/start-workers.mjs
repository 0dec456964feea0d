import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/helpers/free-port.mjs'
import { cpuMicrosecondsOf } from './process-cpu.mjs'

const program = fileURLToPath(new URL('../../packages/gateway/bin/diana.mjs', import.meta.url))

/** Starts `diana start` with workers in front of `upstream` (host:port), by these rules. */
export async function startWorkers({ upstream, workers, document }) {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  const port = await freePort()
  const config = join(folder, 'diana.json')
  const gateway = { routes: [{ to: `http://${upstream}` }], listen: { host: '127.0.0.1', port } }
  await writeFile(config, JSON.stringify({ ...document, gateway }))
  const args = ['start', '--config', config, '--workers', String(workers), '--admin-port', 'off']
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const kill = () => child.kill('SIGTERM')
  process.once('exit', kill)
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 600 || child.exitCode !== null) throw new Error('the workers do not start')
    await setTimeout(50)
  }
  return {
    port,
    cpuMicroseconds: () => cpuMicrosecondsOf(child.pid),
    async stop() {
      process.removeListener('exit', kill)
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}

async function answers(port) {
  const response = await fetch(`http://127.0.0.1:${port}/orders`).catch(() => undefined)
  return response?.ok === true
}
