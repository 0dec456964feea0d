import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { expect } from 'vitest'
import { freePort } from '../helpers/free-port.mjs'
import type { GatewayRig } from '../helpers/gateway-rig.ts'
import { type Client, runProgram, someBytes, startProgram, versionOf } from './client.ts'
import { fileService } from './file-service.ts'

async function untilItListens(port: number): Promise<void> {
  await expect
    .poll(
      () =>
        request(`http://127.0.0.1:${port}/`).then(
          ({ body }) => body.dump().then(() => true),
          () => false,
        ),
      {
        timeout: 20_000,
      },
    )
    .toBe(true)
}

/** nginx with one server; `location` is what it does there. */
async function startNginx(rig: GatewayRig, location: string): Promise<number> {
  const folder = rig.folder()
  // started by root, nginx reads files as another user
  chmodSync(folder, 0o755)
  const port = await freePort()
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name};`,
  )
  writeFileSync(join(folder, 'body.bin'), someBytes(300_000))
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log off; ${temporary.join(' ')}
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  server { listen 127.0.0.1:${port}; root ${folder}; client_max_body_size 0; ${location} }
}
`,
  )
  startProgram(rig, 'nginx', ['-e', `${folder}/error.log`, '-c', join(folder, 'nginx.conf')])
  await untilItListens(port)
  return port
}

async function startHaproxy(rig: GatewayRig, backend: string): Promise<number> {
  const folder = rig.folder()
  const port = await freePort()
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend in
  bind 127.0.0.1:${port}
  default_backend out
backend out
  ${backend}
`,
  )
  startProgram(rig, 'haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')])
  await untilItListens(port)
  return port
}

/** Calls of several kinds give the same through a chain of servers as they would without it. */
async function expectServed(url: string): Promise<void> {
  const body = someBytes(2_000_000)
  for (let call = 0; call < 3; call++) {
    const posted = await request(`${url}/echo?a=b`, { method: 'POST', body })
    expect(posted.statusCode).toBe(200)
    expect(Buffer.from(await posted.body.arrayBuffer()).equals(body)).toBe(true)
    const head = await request(`${url}/echo`, { method: 'HEAD' })
    expect(head.statusCode).toBe(200)
    await head.body.dump()
  }
}

async function guardEcho(rig: GatewayRig, words: object = {}, gateway: object = {}) {
  const service = await rig.serve((incoming, response) => incoming.pipe(response))
  const guarded = await rig.guard({ ...words, gateway: { ...gateway, routes: [{ to: service.url }] } })
  return { ...service, ...guarded, port: guarded.port }
}

const behindNginx: Client = {
  name: 'nginx in front',
  isInstalledBySetUp: true,
  version: () => versionOf('nginx', ['-v']),
  async use(rig) {
    const { port: to, received } = await guardEcho(rig, { trustProxy: ['127.0.0.0/8'] })
    const port = await startNginx(
      rig,
      `location / { proxy_pass http://127.0.0.1:${to}; proxy_http_version 1.1; proxy_set_header Host $host;
         proxy_set_header Connection $connection_upgrade; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
         proxy_set_header X-Forwarded-Proto https; proxy_request_buffering off; }`,
    )
    await expectServed(`http://127.0.0.1:${port}`)
    expect(received.at(-1)!.headers['x-forwarded-proto']).toBe('https')
  },
}

const beforeNginx: Client = {
  name: 'nginx behind',
  isInstalledBySetUp: true,
  version: () => versionOf('nginx', ['-v']),
  async use(rig) {
    const port = await startNginx(
      rig,
      'location /folder { return 301 /folder/; } location /abs { return 302 http://$host:$server_port/b; }',
    )
    const { url } = await rig.guard({ gateway: { routes: [{ to: `http://127.0.0.1:${port}` }] } })
    const whole = await request(`${url}/body.bin`)
    expect(Buffer.from(await whole.body.arrayBuffer()).equals(someBytes(300_000))).toBe(true)
    const part = await request(`${url}/body.bin`, { headers: { range: 'bytes=10-19' } })
    expect([
      part.statusCode,
      Buffer.from(await part.body.arrayBuffer()).equals(someBytes(300_000).subarray(10, 20)),
    ]).toEqual([206, true])
    const again = await request(`${url}/body.bin`, { headers: { 'if-none-match': String(whole.headers.etag) } })
    expect(again.statusCode).toBe(304)
    for (const path of ['/folder', '/abs']) {
      const { headers, body } = await request(`${url}${path}`)
      await body.dump()
      expect(new URL(String(headers.location), url).origin).toBe(url)
    }
    expect((await request(`${url}/body.bin`, { method: 'POST', body: 'x' })).statusCode).toBe(405)
  },
}

const behindHaproxy: Client = {
  name: 'HAProxy in front',
  isInstalledBySetUp: false,
  version: () => versionOf('haproxy', ['-v']),
  async use(rig) {
    const { port: to, received } = await guardEcho(rig, {}, { healthPath: '/up' })
    const port = await startHaproxy(
      rig,
      `option httpchk GET /up\n  option forwardfor\n  server a 127.0.0.1:${to} check inter 100`,
    )
    await expectServed(`http://127.0.0.1:${port}`)
    expect(received.at(-1)!.headers['x-forwarded-for']).toContain('127.0.0.1')
  },
}

const beforeHaproxy: Client = {
  name: 'HAProxy behind',
  isInstalledBySetUp: false,
  version: () => versionOf('haproxy', ['-v']),
  async use(rig) {
    const service = await rig.serve((incoming, response) => incoming.pipe(response))
    const port = await startHaproxy(rig, `server a ${new URL(service.url).host}`)
    const { url } = await rig.guard({ gateway: { routes: [{ to: `http://127.0.0.1:${port}` }] } })
    await expectServed(url)
  },
}

const cadaver: Client = {
  name: 'cadaver',
  isInstalledBySetUp: false,
  version: () => versionOf('cadaver'),
  async use(rig) {
    const folder = rig.folder()
    writeFileSync(join(folder, 'a.txt'), 'hello')
    const serve = fileService(folder)
    const propfind = `<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/</D:href><D:propstat><D:prop>
<D:resourcetype><D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>`
    const { url: to, received } = await rig.serve((incoming, response) => {
      if (incoming.method === 'OPTIONS')
        response.writeHead(200, { dav: '1, 2', allow: 'OPTIONS, PROPFIND, GET, PUT' }).end()
      else if (incoming.method === 'PROPFIND')
        incoming.resume().on('end', () => response.writeHead(207, { 'content-type': 'application/xml' }).end(propfind))
      else if (incoming.method === 'PUT') incoming.resume().on('end', () => response.writeHead(201).end())
      else serve(incoming, response)
    })
    const { url } = await rig.guard({ gateway: { routes: [{ to }] } })
    const script = join(folder, 'script')
    writeFileSync(script, `open ${url}/\nget a.txt ${folder}/back.txt\nput ${folder}/a.txt b.txt\nquit\n`)
    await runProgram('sh', ['-c', `cadaver < ${script}`], { env: { HOME: folder } })
    expect(new Set(received.map(({ method }) => method))).toEqual(new Set(['OPTIONS', 'PROPFIND', 'GET', 'PUT']))
  },
}

/** Servers before and behind the gateway. */
export const serverClients: readonly Client[] = [behindNginx, beforeNginx, behindHaproxy, beforeHaproxy, cadaver]
