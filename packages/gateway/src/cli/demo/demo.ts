import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import fastify, { type FastifyInstance } from 'fastify'
import { packageFolder } from '../../version.ts'

/** The rule file of the demo. */
export const demoRules: string = join(packageFolder, 'demo/diana.yaml')

/** Copies the demo's rules for changes at will, and returns where the copy is. */
export async function copyDemoRules(): Promise<{ path: string; remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'diana-demo-'))
  const path = join(folder, 'diana.yaml')
  await copyFile(demoRules, path)
  return { path, remove: () => rm(folder, { recursive: true, force: true }) }
}

/** Returns a small service to try Diana on: each answer says what was called and by which caller. */
export function createDemoService(): FastifyInstance {
  const app = fastify()
  const orders = [
    { id: 1, item: 'bow' },
    { id: 2, item: 'arrow' },
  ]
  app.addHook('preSerialization', async ({ method, url, headers }, _reply, payload) => {
    const caller = {
      account: headers['x-account-id'] ?? null,
      device: headers['x-device-id'] ?? null,
      address: headers['x-forwarded-for'] ?? null,
    }
    return { ...(payload as object), call: `${method} ${url}`, caller }
  })
  app.get('/', async () => ({ paths: ['/hello', '/orders', '/orders/1', '/sms', '/reports'] }))
  app.get('/hello', async () => ({ message: 'hello' }))
  app.get('/orders', async () => ({ orders }))
  app.post('/orders', async (_request, reply) => reply.code(201).send({ message: 'ordered' }))
  app.get<{ Params: { id: string } }>('/orders/:id', async ({ params }, reply) => {
    const order = orders.find(({ id }) => `${id}` === params.id)
    return order === undefined ? reply.code(404).send({ message: 'no such order' }) : { order }
  })
  app.get('/reports', async () => ({ message: 'reported' }))
  app.post('/sms', async (_request, reply) => reply.code(202).send({ message: 'sent' }))
  return app
}
