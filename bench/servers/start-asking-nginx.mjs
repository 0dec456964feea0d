import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../../test/helpers/free-port.mjs'
import { searchPath } from '../programs.mjs'
import { cpuMicrosecondsOf } from './process-cpu.mjs'

const deployed = new URL('../../deploy/nginx/diana.conf', import.meta.url)

/** nginx with the configuration in deploy/ before a service; without `asked`, it does not ask. */
export async function startAskingNginx({ servicePort, asked }) {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  const [port, openPort] = [await freePort(), await freePort()]
  const ports = { 8080: port, 8089: openPort, 8082: asked ?? openPort }
  let server = (await readFile(deployed, 'utf8'))
    .replaceAll(/127\.0\.0\.1:(80\d\d)/g, (found, one) => (one in ports ? `127.0.0.1:${ports[one]}` : found))
    .replace(
      'proxy_pass http://127.0.0.1:3000;',
      'proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection "";',
    )
  if (asked === undefined) server = server.replace('auth_request /_diana;', 'auth_request off;')
  const configuration = `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
events { worker_connections 1024; }
http {
  access_log off;
  ${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(name => `${name}_temp_path ${folder}/${name};`).join(' ')}
  keepalive_requests 100000000;
  upstream service { server 127.0.0.1:${servicePort}; keepalive 128; keepalive_requests 100000000; }
  ${server.replace('keepalive 64;', 'keepalive 64; keepalive_requests 100000000;')}
}
`
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration)
  const child = spawn('nginx', ['-e', join(folder, 'error.log'), '-p', folder, '-c', file], {
    stdio: 'ignore',
    env: { ...process.env, PATH: searchPath },
  })
  const kill = () => child.kill('SIGTERM')
  process.once('exit', kill)
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 200 || child.exitCode !== null) {
      throw new Error(`nginx does not start: ${await readFile(join(folder, 'error.log'), 'utf8').catch(() => '')}`)
    }
    await setTimeout(20)
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
