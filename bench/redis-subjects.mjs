// The stores inside the libraries, given an ioredis client: the number of a call in, a promise out.

import { createHash } from 'node:crypto'
import { algorithms } from '../packages/limiter/dist/algorithms/index.js'
import { redisCharge } from '../packages/limiter/dist/stores/redis/counter.js'
import { RedisStore } from '../packages/limiter/dist/stores/redis/redis-store.js'

export const MINUTE = 60_000
export const PLENTY = 50_000_000
export const KEYS = 1000
const RULES = ['whole', 'account', 'resource']

const keyOf = (i, rule) => (rule === 'whole' ? 'all' : `user-${(i * 7919) % KEYS}-key`)

/** A decision by Diana's store alone: no deadline, no fallback in this process, no verdict. */
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

async function express(client) {
  const { RedisStore: Store } = await import('rate-limit-redis')
  const store = new Store({ sendCommand: (command, ...args) => client.call(command, ...args) })
  await store.init({ windowMs: MINUTE })
  return i => store.increment(keyOf(i, 'account'))
}

/** The least that a count in Redis can be: one script call that adds one and sets the expiry. */
export async function bareScript(client) {
  const script = `
    local count = redis.call('INCR', KEYS[1])
    if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
    return count`
  await client.script('LOAD', script)
  const sha = createHash('sha1').update(script).digest('hex')
  return i => client.evalsha(sha, 1, keyOf(i, 'account'), MINUTE)
}

export const subjects = {
  'diana store, one rule': client => diana(client, ['account']),
  'diana store, three rules': client => diana(client, RULES),
  'diana store without by': client => diana(client, ['whole']),
  'diana store, sliding-window, without by': client => diana(client, ['whole'], 'sliding-window'),
  'diana store, token-bucket, without by': client => diana(client, ['whole'], 'token-bucket'),
  'rate-limit-redis store': express,
}
