// Node's own server, with everything limited that reaches it: requests, upgrades, tunnels.
// Run it: npm run build && node examples/http/server.mjs
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createLimiter } from 'diana-limiter'
import { guard } from 'diana-limiter/http'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '5/m' }] })

const server = createServer((request, response) => {
  // the target is normalized, whatever the caller sent: //hello is /hello
  response.end(`you called ${request.url}\n`)
})
guard(server, limiter)

server.listen(process.env.PORT ?? 3000, '127.0.0.1')
await once(server, 'listening')
export const url = `http://127.0.0.1:${server.address().port}/hello`
console.log(`listening on ${url}`)

export async function close() {
  server.closeAllConnections()
  server.close()
  await limiter.close()
}
