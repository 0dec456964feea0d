import 'reflect-metadata'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { listen } from '@test/filters/listen'
import express5 from 'express'
import fastify from 'fastify'
import { afterEach, expect, it } from 'vitest'
import { rateLimit as onExpress } from './express.ts'
import { rateLimit as onFastify } from './fastify.ts'

const express4 = createRequire(import.meta.url)('express4') as typeof express5
const closing: (() => unknown)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

type Address = (forwarded: string | readonly string[]) => Promise<string>
type Setting = boolean | number | string | string[] | ((address: string, hop: number) => boolean) | undefined

const frameworks: Readonly<Record<string, (setting: Setting, options?: object) => Promise<Address>>> = {
  'Express 5': (setting, options) => onApp(express5(), setting, options),
  'Express 4': (setting, options) => onApp(express4(), setting, options),
  'Fastify 5': async (setting, options) => {
    let seen: string | undefined
    const app = fastify({
      ...(setting !== undefined && { trustProxy: setting as string }),
      forceCloseConnections: true,
    })
    app.register(onFastify({ ...limit(ip => (seen = ip)), ...options }))
    app.get('/', async () => 'served')
    await app.listen({ port: 0, host: '127.0.0.1' })
    closing.push(() => app.close())
    return asking((app.server.address() as AddressInfo).port, () => seen)
  },
}

/** A limit whose function of the call sees the address that it is counted by. */
function limit(see: (ip: string) => void) {
  return {
    limit: '1000/h',
    by: (_request: unknown, call: { readonly ip?: string | undefined }) => {
      see(call.ip ?? 'none')
      return 'all'
    },
  } as const
}

async function onApp(app: ReturnType<typeof express5>, setting: Setting, options: object = {}): Promise<Address> {
  let seen: string | undefined
  if (setting !== undefined) app.set('trust proxy', setting)
  const own = onExpress({ ...limit(ip => (seen = ip)), ...options })
  app.use(own, (_request, response) => void response.send('served'))
  const { port, close } = await listen(createServer(app))
  closing.push(close, own.close)
  return asking(port, () => seen)
}

function asking(port: number, seen: () => string | undefined): Address {
  return async forwarded => {
    const sent = request({ port, host: peer, headers: { 'x-forwarded-for': forwarded as string } }).end()
    const [answer] = (await once(sent, 'response')) as [IncomingMessage]
    await once(answer.resume(), 'end')
    return seen()!
  }
}

const peer = '127.0.0.1'
const near = 'loopback, 10.0.0.0/8'

/** What a setting of the framework makes of X-Forwarded-For, which callers may have begun themselves. */
const rows: readonly (readonly [Setting, string | readonly string[], string])[] = [
  [undefined, '203.0.113.9', peer],
  [false, '203.0.113.9', peer],
  [near, '203.0.113.9', '203.0.113.9'],
  [near, '198.51.100.1, 203.0.113.9', '203.0.113.9'],
  [near, '198.51.100.1, 203.0.113.9, 10.0.0.7', '203.0.113.9'],
  [near, ['198.51.100.1', '203.0.113.9'], '203.0.113.9'],
  [near, '203.0.113.9, unknown', peer],
  [near, '203.0.113.9, 10.0.0.7, not an address', peer],
  [near, '<script>, 10.0.0.7', '10.0.0.7'],
  [near, '::ffff:203.0.113.9', '203.0.113.9'],
  [near, '', peer],
  [near, `${'198.51.100.1, '.repeat(900)}203.0.113.9`, '203.0.113.9'],
  ['192.0.2.0/24', '203.0.113.9', peer],
  [['127.0.0.1'], '10.0.0.7, 203.0.113.9', '203.0.113.9'],
  [(address, hop) => address === peer && hop === 0, '198.51.100.1, 203.0.113.9', '203.0.113.9'],
  [true, '198.51.100.1, 203.0.113.9', '198.51.100.1'],
]

for (const [name, start] of Object.entries(frameworks)) {
  it.each(rows)(`${name} with the setting %j counts %j under %s`, async (setting, forwarded, expected) => {
    expect(await (await start(setting))(forwarded)).toBe(expected)
  })

  it(`${name}: trustProxy of the limit wins over the setting of the framework`, async () => {
    expect(await (await start(true, { trustProxy: 0 }))('203.0.113.9')).toBe(peer)
    expect(await (await start(false, { trustProxy: 1 }))('198.51.100.1, 203.0.113.9')).toBe('203.0.113.9')
    expect(await (await start(true, { trustProxy: '127.0.0.1' }))('198.51.100.1, 203.0.113.9')).toBe('203.0.113.9')
  })
}

it.each([1, 2])('Express with %s hops counts from the right, as Express does', async hops => {
  const address = await frameworks['Express 5']!(hops)
  expect(await address('192.0.2.1, 198.51.100.1, 203.0.113.9')).toBe(hops === 1 ? '203.0.113.9' : '198.51.100.1')
})

it.each(Object.keys(frameworks))('%s: a setting that throws leaves the address of the peer', async name => {
  const setting = () => {
    throw new Error('the setting failed, as this test wants it')
  }
  expect(await (await frameworks[name]!(setting, { onError: () => {} }))('203.0.113.9')).toBe(peer)
})

it('Fastify believes no header with a number of hops, and neither does its filter', async () => {
  expect(await (await frameworks['Fastify 5']!(1))('203.0.113.9')).toBe(peer)
})
