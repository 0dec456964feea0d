// A decision by each subject that counts in this process: a key and the number of the call in.

import { algorithms } from '../packages/limiter/dist/algorithms/index.js'
import { createLimiter, RateLimiter } from '../packages/limiter/dist/index.js'
import { localCharge, MemoryStore } from '../packages/limiter/dist/stores/memory/memory-store.js'

const MINUTE = 60_000
const PLENTY = 50_000_000
const MAX_KEYS = 20_000_000

/** A decision by Diana's store alone, as the peers' stores are called below: key in, allowed or not out. */
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

async function check(count) {
  const limiter = await createLimiter({
    identify: { account: ['header:x-account-id'], device: ['header:x-device-id'] },
    rules: [
      { id: 'whole', limit: `${count}/m`, algorithm: 'fixed-window' },
      { id: 'account', by: 'account', limit: `${count}/m`, algorithm: 'fixed-window' },
      { id: 'device', by: 'device', limit: `${count}/m`, algorithm: 'fixed-window' },
      { id: 'resource', by: 'resource', limit: `${count}/m`, algorithm: 'fixed-window' },
    ],
  })
  return key =>
    limiter.decide({
      method: 'GET',
      path: '/orders',
      ip: '203.0.113.9',
      headers: { 'x-account-id': key, 'x-device-id': key },
    })
}

/** express-rate-limit and hono-rate-limiter have stores of one shape. */
async function windowStore(name) {
  const { MemoryStore: Store } = await import(name)
  const peer = new Store()
  peer.init({ windowMs: MINUTE })
  return key => peer.increment(key)
}

async function flexible(points) {
  const { RateLimiterMemory } = await import('rate-limiter-flexible')
  return new RateLimiterMemory({ points, duration: MINUTE / 1000 })
}

export const subjects = {
  'bare Map': () => {
    const map = new Map()
    return key => map.set(key, (map.get(key) ?? 0) + 1)
  },
  'diana fixed-window': () => store('fixed-window', PLENTY),
  'diana token-bucket': () => store('token-bucket', PLENTY),
  'diana sliding-window': () => store('sliding-window', PLENTY),
  'diana fixed-window, refusing': () => store('fixed-window', 0),
  'diana check, 4 rules': () => check(PLENTY),
  'express-rate-limit': () => windowStore('express-rate-limit'),
  'hono-rate-limiter': () => windowStore('hono-rate-limiter'),
  'rate-limiter-flexible': async () => {
    const peer = await flexible(PLENTY)
    return key => peer.consume(key)
  },
  'rate-limiter-flexible, refusing': async () => {
    const peer = await flexible(0)
    return key => peer.consume(key).catch(() => false)
  },
  'rate-limiter-flexible, 4 limiters': async () => {
    const peers = await Promise.all([1, 2, 3, 4].map(() => flexible(PLENTY)))
    return key => Promise.all([peers[0].consume('all'), ...peers.slice(1).map(peer => peer.consume(key))])
  },
  'limiter, one per key in a Map': async () => {
    const { RateLimiter: Peer } = await import('limiter')
    const peers = new Map()
    return key => {
      let peer = peers.get(key)
      if (peer === undefined) {
        peer = new Peer({ tokensPerInterval: PLENTY, interval: MINUTE })
        peers.set(key, peer)
      }
      return peer.tryRemoveTokens(1)
    }
  },
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
