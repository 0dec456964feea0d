import { createHash } from 'node:crypto'
import { z } from 'diana-limiter/schema'
import fastify from 'fastify'
import { expect, it } from 'vitest'
import { apiKey } from './api-key.ts'

const digest = (key: string): string => createHash('sha256').update(key).digest('hex')

async function start() {
  const keys = [
    { name: 'all', sha256: digest('key-of-all') },
    {
      name: 'shop',
      sha256: digest('key-of-shop').toUpperCase(),
      paths: ['/orders', '/carts/'],
      methods: ['get', 'POST'],
    },
  ]
  const words = z.strictObject(apiKey.options).parse({ keys })
  const app = fastify()
  await app.register(apiKey.create(words, { folder: '.', now: Date.now }))
  app.all('/*', async ({ headers }) => ({ name: headers['x-api-key-name'], key: headers['x-api-key'] ?? null }))
  return app
}

it.each([
  ['GET', '/orders', 200],
  ['HEAD', '/orders', 200],
  ['POST', '/orders/1?x=1', 200],
  ['GET', '/orders;x=1/2', 200],
  ['GET', '/orders/', 200],
  ['GET', '/carts', 200],
  ['GET', '/carts/1', 200],
  ['DELETE', '/orders', 403],
  ['GET', '/ordersx', 403],
  ['GET', '/', 403],
  ['GET', '/users', 403],
] as const)('an API key gives access to its own paths: %s %s gives %i', async (method, url, status) => {
  const app = await start()
  expect((await app.inject({ method, url, headers: { 'x-api-key': 'key-of-shop' } })).statusCode).toBe(status)
  expect((await app.inject({ method, url, headers: { 'x-api-key': 'key-of-all' } })).statusCode).toBe(200)
})

it.each([undefined, '', 'key-of-nobody', digest('key-of-all'), 'x'.repeat(5000)])(
  'the invalid API key %s gives no access',
  async key => {
    const app = await start()
    const headers = key === undefined ? {} : { 'x-api-key': key }
    const answer = await app.inject({ url: '/orders', headers })
    expect([answer.statusCode, answer.headers['www-authenticate']]).toEqual([401, 'ApiKey header="x-api-key"'])
  },
)

it('the service gets the name of the key instead of the key, and a caller cannot set that name', async () => {
  const app = await start()
  const headers = { 'x-api-key': 'key-of-all', 'x-api-key-name': 'spoofed' }
  expect((await app.inject({ url: '/', headers })).json()).toEqual({ name: 'all', key: null })
})
