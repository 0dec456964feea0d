// A decision by each subject, given an ioredis client: the number of a call in, a promise out.

import { createHash } from 'node:crypto'
import { algorithms } from '../packages/limiter/dist/algorithms/index.js'
import { redisCharge } from '../packages/limiter/dist/stores/redis/counter.js'
import { RedisStore } from '../packages/limiter/dist/stores/redis/redis-store.js'

const MINUTE = 60_000
const PLENTY = 50_000_000
const KEYS = 1000
const RULES = ['whole', 'account', 'resource']

const keyOf = (i, rule) => (rule === 'whole' ? 'all' : `user-${(i * 7919) % KEYS}-key`)

/** A decision by Diana's store, fed as her judge feeds it. */
function diana(client, rules, algorithm = 'fixed-window') {
  const store = new RedisStore(([command, ...args]) => client.call(command, ...args))
  const limit = { count: PLENTY, periodMs: MINUTE }
  const meter = algorithms.find(({ name }) => name === algorithm).meter(limit, {})
  const counters = rules.map(id => store.createCounter({ id, algorithm, enforced: true, meters: [meter] }))
  return i => {
    const charges = counters.map((counter, rule) => {
      const charge = redisCharge(counter)
      charge.key = keyOf(i, rules[rule])
      charge.cost = 1
      return charge
    })
    return store.take(charges)
  }
}

async function flexible(client, rules) {
  const { RateLimiterRedis, RateLimiterUnion } = (await import('rate-limiter-flexible')).default
  const limiters = rules.map(keyPrefix => {
    return new RateLimiterRedis({ storeClient: client, keyPrefix, points: PLENTY, duration: MINUTE / 1000 })
  })
  if (limiters.length === 1) return i => limiters[0].consume(keyOf(i, rules[0]))
  const union = new RateLimiterUnion(...limiters)
  return i => union.consume(keyOf(i, 'account'))
}

async function express(client) {
  const { RedisStore: Store } = await import('rate-limit-redis')
  const store = new Store({ sendCommand: (command, ...args) => client.call(command, ...args) })
  await store.init({ windowMs: MINUTE })
  return i => store.increment(keyOf(i, 'account'))
}

/** The least that a count in Redis can be: one script call that adds one and sets the expiry. */
async function bare(client) {
  const script = `
    local count = redis.call('INCR', KEYS[1])
    if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
    return count`
  await client.script('LOAD', script)
  const sha = createHash('sha1').update(script).digest('hex')
  return i => client.evalsha(sha, 1, keyOf(i, 'account'), MINUTE)
}

export const subjects = {
  'bare EVALSHA': bare,
  'diana, one rule': client => diana(client, ['account']),
  'diana sliding-window, one rule': client => diana(client, ['account'], 'sliding-window'),
  'diana token-bucket, one rule': client => diana(client, ['account'], 'token-bucket'),
  'diana without by': client => diana(client, ['whole']),
  'diana sliding-window, without by': client => diana(client, ['whole'], 'sliding-window'),
  'diana token-bucket, without by': client => diana(client, ['whole'], 'token-bucket'),
  'rate-limiter-flexible, one rule': client => flexible(client, ['account']),
  'express-rate-limit, rate-limit-redis': express,
  'diana, three rules': client => diana(client, RULES),
  'rate-limiter-flexible, union of three': client => flexible(client, RULES),
}
