import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { request } from 'undici'
import { expect, vi } from 'vitest'
import { startProgram } from '../clients/client.ts'
import { freePort } from '../helpers/free-port.mjs'
import type { GatewayRig } from '../helpers/gateway-rig.ts'

const deploy = fileURLToPath(new URL('../../deploy/', import.meta.url))

/** Where the parts are that a proxy stands between. */
export interface Parts {
  readonly service: string
  /** Diana's HTTP port, or that for SPOE, whichever the proxy asks. */
  readonly http: string
  readonly spoe: string
}

/** What callers get while Diana does not answer; `shipped`: as the file in `deploy/` says. */
export type Failing = 'open' | 'closed' | 'shipped'

/** A proxy with the configuration in `deploy/`, which differs from it in ports only. */
export interface Proxy {
  readonly name: string
  /** The status of a request while nothing listens at Diana's port, if the configuration fails closed. */
  readonly closedStatus: number
  /** The status of a request whose answer is late: by the shipped file, and by that which fails open. */
  readonly lateStatus: { readonly shipped: number; readonly open: number }
  /** Starts it; returns its address. */
  start(rig: GatewayRig, parts: Parts, failing: Failing): Promise<string>
}

export const proxies: readonly Proxy[] = [
  {
    name: 'nginx',
    closedStatus: 500,
    lateStatus: { shipped: 500, open: 500 },
    async start(rig, parts, failing) {
      const folder = rig.folder()
      // started by root, nginx works as another user
      chmodSync(folder, 0o755)
      const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        name => `${name}_temp_path ${folder}/${name};`,
      )
      const { text, port } = await withPorts(parts, readFileSync(join(deploy, 'nginx/diana.conf'), 'utf8'))
      const conf = failing === 'closed' ? without(text, /^.*backup;\n/m) : text
      writeFileSync(
        join(folder, 'nginx.conf'),
        `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 1024; }
http { access_log off; ${temporary.join(' ')}
${conf} }`,
      )
      startProgram(rig, 'nginx', ['-e', `${folder}/error.log`, '-c', join(folder, 'nginx.conf')])
      return await untilItAnswers(port)
    },
  },
  {
    name: 'Caddy',
    closedStatus: 502,
    lateStatus: { shipped: 504, open: 504 },
    async start(rig, parts, failing) {
      const file = join(rig.folder(), 'Caddyfile')
      const { text, port } = await withPorts(parts, readFileSync(join(deploy, 'caddy/Caddyfile'), 'utf8'))
      writeFileSync(file, failing === 'closed' ? without(text, /\n\thandle_errors \{\n.*?\n\t\}\n/s) : text)
      startProgram(rig, 'caddy', ['run', '--adapter', 'caddyfile', '--config', file])
      return await untilItAnswers(port)
    },
  },
  {
    name: 'HAProxy',
    closedStatus: 503,
    lateStatus: { shipped: 503, open: 200 },
    async start(rig, parts, failing) {
      const folder = rig.folder()
      const { text, port } = await withPorts(parts, readFileSync(join(deploy, 'haproxy/haproxy.cfg'), 'utf8'))
      const agent = join(folder, 'diana-spoe.conf')
      writeFileSync(agent, readFileSync(join(deploy, 'haproxy/diana-spoe.conf')))
      const conf = failing !== 'open' ? text : without(text, /^.*if !\{ var\(txn\.diana\.status\) -m found \}\n/m)
      writeFileSync(join(folder, 'haproxy.cfg'), conf.replace('config diana-spoe.conf', `config ${agent}`))
      startProgram(rig, 'haproxy', ['-db', '-f', join(folder, 'haproxy.cfg')])
      return await untilItAnswers(port)
    },
  },
]

async function withPorts(
  { service, http, spoe }: Parts,
  text: string,
): Promise<{ readonly text: string; readonly port: number }> {
  const [port, openPort] = [await freePort(), await freePort()]
  const ports: Readonly<Record<string, string>> = {
    ...{ '127.0.0.1:8080': `127.0.0.1:${port}`, ':8080': `:${port}`, '127.0.0.1:8089': `127.0.0.1:${openPort}` },
    ...{ '127.0.0.1:3000': service, '127.0.0.1:8082': http, '127.0.0.1:8084': spoe },
  }
  return { text: text.replaceAll(/(127\.0\.0\.1)?:\d+/g, found => ports[found] ?? found), port }
}

/** The text without what says how to fail; throws if it is not there, so that no test passes by not finding it. */
function without(text: string, lines: RegExp): string {
  const shorter = text.replace(lines, '')
  if (shorter === text) throw new Error(`the configuration has nothing like ${lines}`)
  return shorter
}

async function untilItAnswers(port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}`
  const status = (): Promise<number> =>
    request(`${url}/ready`).then(
      ({ statusCode, body }) => body.dump().then(() => statusCode),
      () => 0,
    )
  // hooks start proxies too, and expect.poll is for tests only
  await vi.waitFor(async () => expect(await status()).toBe(200), { timeout: 20_000, interval: 20 })
  return url
}
