import { createLimiter } from 'diana-limiter'
import { diana } from 'diana-limiter/koa'
import Koa from 'koa'

const limiter = await createLimiter({ rules: [{ id: 'per-address', by: 'ip', limit: '2/m' }] })
export const app = new Koa()
app.use(diana(limiter))
app.use(context => {
  context.body = 'hello'
})
