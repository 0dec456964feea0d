// A limiter on a Redis that may be gone, by each subject: what it answers is not looked at, only when.

import { Redis } from 'ioredis'
import { createLimiter } from '../packages/limiter/dist/index.js'

export const DIANA_TIMEOUT_MS = 50

// without a listener a client's errors would end the process
const connect = (url, options) => new Redis(url, options).on('error', () => undefined)

async function flexible(url, insured) {
  const { RateLimiterMemory, RateLimiterRedis } = (await import('rate-limiter-flexible')).default
  const limits = { points: 1000, duration: 60 }
  const limiter = new RateLimiterRedis({
    ...limits,
    storeClient: connect(url, { enableOfflineQueue: false }),
    ...(insured ? { insuranceLimiter: new RateLimiterMemory(limits) } : {}),
  })
  return () => limiter.consume('user')
}

export const subjects = {
  diana: async url => {
    const limiter = await createLimiter({
      rules: [{ id: 'account', by: 'ip', limit: '1000/m' }],
      store: { redis: url, timeout: `${DIANA_TIMEOUT_MS}ms` },
    })
    return () => limiter.check({ method: 'GET', path: '/orders', ip: '203.0.113.9', headers: {} })
  },
  'rate-limiter-flexible': url => flexible(url, false),
  'rate-limiter-flexible, insured': url => flexible(url, true),
  'express-rate-limit, rate-limit-redis': async url => {
    const { RedisStore } = await import('rate-limit-redis')
    const client = connect(url)
    const store = new RedisStore({ sendCommand: (command, ...args) => client.call(command, ...args) })
    // the script is loaded when the store is made, and waits as every other command does
    const ready = Promise.resolve(store.init({ windowMs: 60_000 }))
    return () => ready.then(() => store.increment('user'))
  },
}
