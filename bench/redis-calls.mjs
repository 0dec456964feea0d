// What a user calls to count in Redis, by each library, given an ioredis client: the number of a call in, a promise out.

import { createLimiter } from '../packages/limiter/dist/index.js'
import { bareScript, KEYS, MINUTE, PLENTY } from './redis-subjects.mjs'

const RULES = ['account', 'account-again', 'account-once-more']
/** Longer than a busy machine is late by: a call that is counted in this process would be measured as if Redis had counted it. */
const TIMEOUT = '5s'

const accountOf = i => `user-${(i * 7919) % KEYS}-key`

const busyAccount = () => 'user-1-key'

async function diana(client, ids, { algorithm = 'fixed-window', lease = 'off', accountAt = accountOf } = {}) {
  const limiter = await createLimiter({
    identify: { account: ['header:x-account-id'] },
    store: { redis: client, timeout: TIMEOUT },
    rules: ids.map(id => ({ id, by: 'account', limit: `${PLENTY}/m`, algorithm, lease, count: 'distributed' })),
  })
  let trouble
  limiter.events.on('store', status => {
    trouble = status.trouble
  })
  return i => {
    if (trouble !== undefined) throw new Error(`Redis does not count: ${trouble}`)
    return limiter.check({ method: 'GET', path: '/orders', headers: { 'x-account-id': accountAt(i) } })
  }
}

async function flexible(client, ids, accountAt = accountOf) {
  const { RateLimiterRedis, RateLimiterUnion } = (await import('rate-limiter-flexible')).default
  const limiters = ids.map(keyPrefix => {
    return new RateLimiterRedis({ storeClient: client, keyPrefix, points: PLENTY, duration: MINUTE / 1000 })
  })
  if (limiters.length === 1) return i => limiters[0].consume(accountAt(i))
  const union = new RateLimiterUnion(...limiters)
  return i => union.consume(accountAt(i))
}

export const calls = {
  'bare EVALSHA': bareScript,
  'diana check, one rule': client => diana(client, ['account']),
  'rate-limiter-flexible consume, one rule': client => flexible(client, ['account']),
  'diana check, sliding-window': client => diana(client, ['account'], { algorithm: 'sliding-window' }),
  'diana check, token-bucket': client => diana(client, ['account'], { algorithm: 'token-bucket' }),
  'diana check, three rules': client => diana(client, RULES),
  'rate-limiter-flexible, union of three': client => flexible(client, RULES),
  'diana check, one rule, leased': client => diana(client, ['account'], { lease: 'auto' }),
  'diana check, three rules, leased': client => diana(client, RULES, { lease: 'auto' }),
  'diana check, busy caller, leased': client => diana(client, ['account'], { lease: 'auto', accountAt: busyAccount }),
  'rate-limiter-flexible consume, busy caller': client => flexible(client, ['account'], busyAccount),
  'diana check, busy caller, three rules, leased': client =>
    diana(client, RULES, { lease: 'auto', accountAt: busyAccount }),
  'rate-limiter-flexible, busy caller, union of three': client => flexible(client, RULES, busyAccount),
}
