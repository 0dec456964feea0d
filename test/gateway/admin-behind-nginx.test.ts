import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLimiter } from 'diana-limiter'
import { request } from 'undici'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { createAdmin } from '../../packages/gateway/src/admin/server/create-admin.ts'
import { parseGatewaySettings } from '../../packages/gateway/src/settings/gateway-settings.ts'
import { listen } from '../browser/stage.ts'
import { startProgram } from '../clients/client.ts'
import { freePort } from '../helpers/free-port.mjs'
import { GatewayRig } from '../helpers/gateway-rig.ts'

// The server and the settings of docs/admin.md, with a real nginx; they differ in ports only.

const page = readFileSync(fileURLToPath(new URL('../../docs/admin.md', import.meta.url)), 'utf8')
const exampleOf = (heading: string, kind: string): string =>
  new RegExp(`^### ${heading}\n[\\s\\S]*?\`\`\`${kind}\n([\\s\\S]*?)\`\`\``, 'm').exec(page)![1]!
const { gateway } = parse(exampleOf('oauth2-proxy', 'yaml')) as { gateway: object }

const rig = new GatewayRig()
let url: string

beforeAll(async () => {
  const limiter = await createLimiter({ rules: [{ id: 'each', by: 'account', limit: '5/h', block: 'manual' }] })
  const { hosts, identity } = parseGatewaySettings(gateway).admin!
  const app = await createAdmin({ hosts, identity, limiter, host: '127.0.0.1', page: '/nowhere' })
  // signs in the user that the cookie names
  const auth = createServer(({ headers }, response) => {
    const [, user, groups = ''] = /^user=(\w+) ?(\w*)$/.exec(headers.cookie ?? '') ?? []
    if (user === undefined) response.writeHead(401).end()
    else response.writeHead(202, { 'x-auth-request-email': user, 'x-auth-request-groups': groups }).end()
  })
  const port = await freePort()
  const ports: Record<string, string> = {
    '127.0.0.1:8443': `127.0.0.1:${port}`,
    '127.0.0.1:8081': new URL(await app.listen({ host: '127.0.0.1', port: 0 })).host,
    '127.0.0.1:4180': new URL(await listen(auth)).host,
  }
  const server = exampleOf('nginx with auth_request', 'nginx').replaceAll(/127\.0\.0\.1:\d+/g, one => ports[one]!)
  const folder = rig.folder()
  // started by root, nginx works as another user
  chmodSync(folder, 0o755)
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(kind => `${kind}_temp_path ${folder}/${kind};`)
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; worker_processes 1;
events { worker_connections 64; }
http { access_log off; ${kinds.join(' ')}
${server} }`,
  )
  startProgram(rig, 'nginx', ['-e', `${folder}/error.log`, '-c', join(folder, 'nginx.conf')])
  url = `http://127.0.0.1:${port}`
  rig.later(async () => {
    await app.close()
    await limiter.close()
    auth.closeAllConnections()
    auth.close()
  })
  await vi.waitFor(async () => expect((await ask('session', {})).status).toBe(401), { timeout: 20_000, interval: 20 })
})
afterAll(() => rig.close())

async function ask(path: string, headers: Record<string, string>, body?: object) {
  const json = body && { body: JSON.stringify(body), method: 'POST' as const }
  const reply = await request(`${url}/api/v1/${path}`, {
    ...json,
    headers: { host: 'diana.example.com', ...(body && { 'content-type': 'application/json' }), ...headers },
  })
  const text = await reply.body.text()
  return { status: reply.statusCode, body: (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown> }
}

test('users of a real nginx with auth_request have the role of their groups, whatever they send themselves', async () => {
  const forged = { 'x-forwarded-email': 'root', 'x-forwarded-groups': 'sre', 'X-Forwarded-For': '203.0.113.1' }
  expect((await ask('session', forged)).status).toBe(401)
  expect((await ask('session', { cookie: 'user=ann sre' })).body).toEqual({
    ...{ role: 'operator', user: 'ann', via: 'proxy', logoutUrl: '/oauth2/sign_out' },
  })
  expect((await ask('session', { ...forged, cookie: 'user=bob' })).body).toMatchObject({ role: 'viewer', user: 'bob' })
})

test('changes of users of a real nginx need proof of their origin, and are listed by name', async () => {
  const block = { rule: 'each', key: 'eve', for: '1m' }
  const cookie = 'user=ann sre'
  expect((await ask('blocks', { cookie }, block)).status).toBe(403)
  expect((await ask('blocks', { cookie, origin: 'https://evil.example' }, block)).status).toBe(403)
  expect((await ask('blocks', { cookie, origin: 'https://diana.example.com' }, block)).status).toBe(200)
  const { body } = await ask('audit', { cookie })
  expect(body.changes).toMatchObject([{ who: 'ann', operation: 'postBlocks', from: '127.0.0.1' }])
})
