import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { startNginx } from '../../paths/services.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

describe('a redirect of nginx', () => {
  test.each([
    ['as it comes', { path: '/', keepHost: undefined }, '/dir', '/dir/'],
    ["with the service's own Host", { path: '/', keepHost: false }, '/dir', '/dir/'],
    ['with another path in front', { path: '/files', rewrite: '/' }, '/files/dir', '/files/dir/'],
  ])('%s leads back to the gateway', async (_, route, called, expected) => {
    const folder = rig.folder()
    mkdirSync(join(folder, 'files/dir'), { recursive: true })
    writeFileSync(join(folder, 'files/dir/index.html'), 'the page')
    writeFileSync(join(folder, 'files/hello'), 'hello')
    const [nginx] = await startNginx(folder)
    rig.later(() => nginx!.close())
    const to = `http://127.0.0.1:${nginx!.port}`
    const { url } = await rig.guard({ gateway: { routes: [{ ...route, to }] } })
    for (const host of [new URL(url).host, 'shop.example', 'shop.example:8080']) {
      const { statusCode, headers, body } = await request(url + called, { headers: { host } })
      await body.dump()
      expect([host, statusCode, headers.location]).toEqual([host, 301, expected])
    }
    const followed = await fetch(url + called)
    expect([followed.url, await followed.text()]).toEqual([url + expected, 'the page'])
  })
})

test('a service over http gets the Host of the caller, unless the route says otherwise', async () => {
  const { url: to, received } = await rig.serve()
  const routes = [{ to }, { path: '/own', keepHost: false, to }]
  const { url } = await rig.guard({ gateway: { routes } })
  for (const path of ['/a', '/own/a'])
    await (await request(url + path, { headers: { host: 'shop.example' } })).body.dump()
  expect(received.map(({ headers }) => headers.host)).toEqual(['shop.example', new URL(to).host])
})

test('the protocol that a trusted proxy reports is used, also if the caller has the same address', async () => {
  const { url: to, received } = await rig.serve()
  const { url } = await rig.guard({ trustProxy: ['127.0.0.1'], gateway: { routes: [{ to }] } })
  const headers = { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' }
  await (await request(url, { headers })).body.dump()
  expect(received[0]!.headers).toMatchObject({ 'x-forwarded-proto': 'https', 'x-forwarded-host': 'shop.example' })
})
