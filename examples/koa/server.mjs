// Koa: a middleware, mounted before all others.
// Run it: npm run build && node examples/koa/server.mjs
import { once } from 'node:events'
import { createLimiter } from 'diana-limiter'
import { diana } from 'diana-limiter/koa'
import Koa from 'koa'

const limiter = await createLimiter({
  rules: [{ id: 'per-address', by: 'ip', limit: '5/m', algorithm: 'token-bucket', burst: 3 }],
})

const app = new Koa()
app.use(diana(limiter))
app.use(context => {
  context.body = 'hello\n'
})

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1')
await once(server, 'listening')
export const url = `http://127.0.0.1:${server.address().port}/`
console.log(`listening on ${url}`)

export async function close() {
  server.closeAllConnections()
  server.close()
  await limiter.close()
}
