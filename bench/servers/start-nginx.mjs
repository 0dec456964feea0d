import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../test/helpers/free-port.mjs'
import { searchPath } from '../programs.mjs'
import { startListener } from './start-listener.mjs'

const START_MS = 4000
const deployed = new URL('../../deploy/nginx/diana.conf', import.meta.url)

/** Starts an nginx of its own in front of `upstream` (host:port), with one worker; with `limits`, one per account. */
export async function startNginx({ upstream, limits }) {
  const port = await freePort()
  const parts = `
  limit_req_zone $http_x_account_id zone=account:10m rate=1000000r/s;
  server {
    listen 127.0.0.1:${port};
    location / {
      ${limits ? 'limit_req zone=account burst=1000000 nodelay;' : ''}
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }`
  return await start({ port, upstream, parts })
}

/** Starts nginx with the configuration in deploy/ before a service; without `asked`, it does not ask. */
export async function startAskingNginx({ servicePort, asked }) {
  const [port, openPort] = [await freePort(), await freePort()]
  const ports = { 8080: port, 8089: openPort, 8082: asked ?? openPort }
  let parts = (await readFile(deployed, 'utf8'))
    .replaceAll(/127\.0\.0\.1:(80\d\d)/g, (found, one) => (one in ports ? `127.0.0.1:${ports[one]}` : found))
    .replace(
      'proxy_pass http://127.0.0.1:3000;',
      'proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection "";',
    )
    .replace('keepalive 64;', 'keepalive 64; keepalive_requests 100000000;')
  if (asked === undefined) parts = parts.replace('auth_request /_diana;', 'auth_request off;')
  return await start({ port, upstream: `127.0.0.1:${servicePort}`, parts })
}

async function start({ port, upstream, parts }) {
  const folder = await mkdtemp(join(tmpdir(), 'diana-bench-'))
  const [file, errors] = [join(folder, 'nginx.conf'), join(folder, 'error.log')]
  await writeFile(file, configuration({ folder, upstream, parts }))
  return await startListener({
    command: ['nginx', '-e', errors, '-p', folder, '-c', file],
    ...{ port, folder, startMs: START_MS },
    complaint: () => readFile(errors, 'utf8').catch(() => 'its error log is missing'),
    env: { ...process.env, PATH: searchPath },
  })
}

function configuration({ folder, upstream, parts }) {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log crit;
events { worker_connections 1024; }
http {
  access_log off;
  ${temporary.map(name => `${name}_temp_path ${folder}/${name};`).join(' ')}
  keepalive_requests 100000000;
  upstream service { server ${upstream}; keepalive 128; keepalive_requests 100000000; }
  ${parts}
}
`
}
