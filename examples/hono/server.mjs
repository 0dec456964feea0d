// Hono, here on Node; on Bun and Deno only the last lines differ.
// Run it: npm run build && node examples/hono/server.mjs
import { once } from 'node:events'
import { serve } from '@hono/node-server'
import { createLimiter } from 'diana-limiter'
import { diana } from 'diana-limiter/hono'
import { Hono } from 'hono'

const limiter = await createLimiter({ rules: [{ id: 'each-route', by: ['ip', 'resource'], limit: '5/m' }] })

const app = new Hono()
app.use(diana(limiter))
// /users/1 and /users/2 are one resource
app.get('/users/:id', context => context.text(`user ${context.req.param('id')}\n`))

const server = serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' })
if (!server.listening) await once(server, 'listening')
export const url = `http://127.0.0.1:${server.address().port}/users/1`
console.log(`listening on ${url}`)

export async function close() {
  server.closeAllConnections()
  server.close()
  await limiter.close()
}
