import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/helpers/free-port.mjs'
import { startListener } from './start-listener.mjs'

const START_MS = 30_000
const program = fileURLToPath(new URL('../../packages/gateway/bin/diana.mjs', import.meta.url))

/** Starts `diana start` with workers in front of `upstream` (host:port), by these rules. */
export async function startWorkers({ upstream, workers, document }) {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  const port = await freePort()
  const config = join(folder, 'diana.json')
  const gateway = { routes: [{ to: `http://${upstream}` }], listen: { host: '127.0.0.1', port } }
  await writeFile(config, JSON.stringify({ ...document, gateway }))
  const args = ['start', '--config', config, '--workers', String(workers), '--admin-port', 'off']
  return await startListener({
    command: [process.execPath, program, ...args],
    ...{ port, folder, startMs: START_MS },
    complaint: () => 'its errors are above',
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
}
