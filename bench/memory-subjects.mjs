// The parts below the public calls that count in this process: a key and the number of the call in.

import { algorithms } from '../packages/limiter/dist/algorithms/index.js'
import { RateLimiter } from '../packages/limiter/dist/index.js'
import { localCharge, MemoryStore } from '../packages/limiter/dist/stores/memory/memory-store.js'
import { bareMap, MINUTE, PLENTY } from './memory-calls.mjs'

const MAX_KEYS = 20_000_000

/** Diana's store alone: no clock, no rules to find, no verdict. */
function store(algorithm, count) {
  const memory = new MemoryStore({ maxKeys: MAX_KEYS })
  const meter = algorithms.find(({ name }) => name === algorithm).meter({ count, periodMs: MINUTE }, {})
  const charge = { ...localCharge(memory.createTable('bench', [meter])), cost: 1 }
  const charges = [charge]
  const start = Date.now() * 1000
  return (key, i) => {
    charge.key = key
    return memory.take(charges, 1, start + i)
  }
}

/** express-rate-limit and hono-rate-limiter have stores of one shape. */
async function windowStore(name) {
  const { MemoryStore: Store } = await import(name)
  const peer = new Store()
  peer.init({ windowMs: MINUTE })
  return key => peer.increment(key)
}

export const subjects = {
  'bare Map': bareMap,
  'diana store, fixed-window': () => store('fixed-window', PLENTY),
  'diana store, token-bucket': () => store('token-bucket', PLENTY),
  'diana store, sliding-window': () => store('sliding-window', PLENTY),
  'diana store, fixed-window, refusing': () => store('fixed-window', 0),
  'express-rate-limit store': () => windowStore('express-rate-limit'),
  'hono-rate-limiter store': () => windowStore('hono-rate-limiter'),
  'diana RateLimiter.acquire': async () => {
    const pace = RateLimiter.create(PLENTY)
    return () => pace.acquire()
  },
  'limiter removeTokens': async () => {
    const { RateLimiter: Peer } = await import('limiter')
    const pace = new Peer({ tokensPerInterval: PLENTY, interval: 'second' })
    return () => pace.removeTokens(1)
  },
  'bottleneck schedule': async () => {
    const { default: Bottleneck } = await import('bottleneck')
    const pace = new Bottleneck({ reservoir: PLENTY, reservoirRefreshAmount: PLENTY, reservoirRefreshInterval: MINUTE })
    const job = async () => undefined
    return () => pace.schedule(job)
  },
}
