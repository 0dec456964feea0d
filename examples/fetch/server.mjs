// fetch: one line limits a handler of Request and Response, here on Node; on Bun and Deno only the last lines differ.
// Run it: npm run build && node examples/fetch/server.mjs
import { once } from 'node:events'
import { serve } from '@hono/node-server'
import { rateLimit } from 'diana-limiter/fetch'

const limit = rateLimit({ limit: '5/m', status: 429 })
const handler = request => new Response(`you asked for ${new URL(request.url).pathname}\n`)

const server = serve({ fetch: limit.wrap(handler), port: Number(process.env.PORT ?? 3000), hostname: '127.0.0.1' })
if (!server.listening) await once(server, 'listening')
export const url = `http://127.0.0.1:${server.address().port}/`
console.log(`listening on ${url}`)

export async function close() {
  server.closeAllConnections()
  server.close()
  await limit.close()
}
