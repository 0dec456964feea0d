import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../helpers/free-port.mjs'
import { startServe } from './gateway.mjs'

const shipped = fileURLToPath(new URL('../../deploy/nginx/diana.conf', import.meta.url))
const startMs = 20_000

/** `diana serve` and nginx with the shipped configuration in front of a service; what callers see is nginx. */
export async function startBehindNginx({ workers }, { hostile }) {
  const server = await startServe({ workers })
  const folder = mkdtempSync(join(tmpdir(), 'diana-nginx-'))
  // started by root, nginx works as another user
  chmodSync(folder, 0o755)
  const [port, openPort] = [await freePort(), await freePort()]
  const places = {
    '127.0.0.1:8080': `127.0.0.1:${port}`,
    '127.0.0.1:8089': `127.0.0.1:${openPort}`,
    '127.0.0.1:3000': new URL(hostile).host,
    '127.0.0.1:8082': new URL(server.url).host,
  }
  const text = readFileSync(shipped, 'utf8').replaceAll(/127\.0\.0\.1:\d+/g, place => places[place] ?? place)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`,
  )
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 1024; }
http { access_log off; ${temporary.join(' ')}
${text} }`,
  )
  const nginx = spawn('nginx', ['-e', `${folder}/error.log`, '-c', file], { stdio: 'ignore' })
  const end = () => nginx.kill('SIGTERM')
  process.once('exit', end)
  const url = `http://127.0.0.1:${port}`
  const until = performance.now() + startMs
  while (
    !(await fetch(`${url}/shared?answer=ok`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() > until)
      throw new Error(`nginx did not start: ${readFileSync(`${folder}/error.log`, 'utf8')}`)
    await pause(50)
  }
  return {
    ...{ url, port, admin: server.admin },
    get output() {
      return server.output
    },
    get hasEnded() {
      return server.hasEnded
    },
    get lost() {
      return server.lost
    },
    get residentBytes() {
      return server.residentBytes
    },
    async close() {
      end()
      if (nginx.exitCode === null && nginx.signalCode === null) await once(nginx, 'close')
      process.off('exit', end)
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
