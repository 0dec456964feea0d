import { initTRPC, TRPCError } from '@trpc/server'
import { createLimiter } from 'diana-limiter'

export const limiter = await createLimiter({
  rules: [{ id: 'orders', match: 'none', by: 'account', limit: '2/m' }],
})
const t = initTRPC.context().create()
const limited = rule =>
  t.middleware(async ({ ctx, next }) => {
    const verdict = await limiter.consume(rule, ctx.user)
    if (!verdict.allowed) {
      const message = `try again in ${Math.ceil(verdict.retryAfterMs / 1000)} s`
      throw new TRPCError({ code: 'TOO_MANY_REQUESTS', message })
    }
    const result = await next()
    verdict.end({ failed: !result.ok })
    return result
  })

export const router = t.router({
  orders: t.procedure.use(limited('orders')).query(({ ctx }) => `orders of ${ctx.user}`),
})
