import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { freePort } from '../../test/helpers/free-port.mjs'
import { searchPath } from '../programs.mjs'
import { cpuMicrosecondsOf } from './process-cpu.mjs'

const configuration = ({ folder, port, upstream, limits }) => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_requests 100000000;
  limit_req_zone $http_x_account_id zone=account:10m rate=1000000r/s;
  upstream service { server ${upstream}; keepalive 128; keepalive_requests 100000000; }
  server {
    listen 127.0.0.1:${port};
    location / {
      ${limits ? 'limit_req zone=account burst=1000000 nodelay;' : ''}
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`

/** Starts an nginx of its own in front of `upstream` (host:port), with one worker; with `limits`, one per account. */
export async function startNginx({ upstream, limits }) {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  await writeFile(file, configuration({ folder, port, upstream, limits }))
  const child = spawn('nginx', ['-e', join(folder, 'error.log'), '-p', folder, '-c', file], {
    stdio: 'ignore',
    env: { ...process.env, PATH: searchPath },
  })
  const failed = once(child, 'error').then(([error]) => error)
  const kill = () => child.kill('SIGTERM')
  process.once('exit', kill)
  for (let tries = 0; !(await answers(port)); tries++) {
    if (tries > 100 || child.exitCode !== null) throw new Error(`nginx does not start: ${await lastWords(folder)}`)
    const error = await Promise.race([failed, setTimeout(20)])
    if (error) throw error
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

const lastWords = folder => readFile(join(folder, 'error.log'), 'utf8').catch(() => 'it said nothing')

async function answers(port) {
  const response = await fetch(`http://127.0.0.1:${port}/orders`).catch(() => undefined)
  return response?.ok === true
}
