// A gateway created in code, in front of a service that has no limits of its own.
// Run it: npm run build && node examples/gateway/server.mjs
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createGateway } from 'diana-gateway'
import { createLimiter } from 'diana-limiter'

const service = createServer((_request, response) => response.end('from the service\n'))
service.listen(0, '127.0.0.1')
await once(service, 'listening')

const limiter = await createLimiter({
  identify: { account: 'header:x-account-id' },
  rules: [{ id: 'per-account', by: 'account', limit: '5/m' }],
})
const gateway = await createGateway({ limiter, upstream: `http://127.0.0.1:${service.address().port}` })

export const url = `${await gateway.listen({ port: process.env.PORT ?? 3000, host: '127.0.0.1' })}/hello`
console.log(`listening on ${url}`)

export async function close() {
  gateway.server.closeAllConnections()
  await gateway.close()
  service.closeAllConnections()
  service.close()
  await limiter.close()
}
