// Counting in this process: one decision by each store, a whole check by four rules, refusals, and bytes per key.
// Peers run with their recommended settings: a fixed window of a minute, the in-memory store, nothing else switched on.

import { algorithms } from '../../packages/limiter/dist/algorithms/index.js'
import { createLimiter } from '../../packages/limiter/dist/index.js'
import { localCharge, MemoryStore } from '../../packages/limiter/dist/stores/memory.js'

const MINUTE = 60_000
const PLENTY = 50_000_000

// flat text, as a header's value is
const keyOf = (i, count) => Buffer.from(`user-${(i * 7919) % count}-key`).toString('latin1')
const keysOf = count => Array.from({ length: count }, (_, i) => keyOf(i, count))

/** A decision by Diana's store alone, as the peers' stores are called below: key in, allowed or not out. */
function store(algorithm, count, options = {}) {
  const memory = new MemoryStore({ maxKeys: 20_000_000 })
  const meter = algorithms.find(({ name }) => name === algorithm).meter({ count, periodMs: MINUTE }, options)
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

async function flexible(points) {
  const { RateLimiterMemory } = await import('rate-limiter-flexible')
  return new RateLimiterMemory({ points, duration: MINUTE / 1000 })
}

const subjects = {
  'bare Map': () => {
    const map = new Map()
    return key => map.set(key, (map.get(key) ?? 0) + 1)
  },
  'diana fixed-window': () => store('fixed-window', PLENTY),
  'diana token-bucket': () => store('token-bucket', PLENTY),
  'diana sliding-window': () => store('sliding-window', PLENTY),
  'diana fixed-window, refusing': () => store('fixed-window', 0),
  'diana check, 4 rules': () => check(PLENTY),
  'express-rate-limit': async () => {
    const { MemoryStore: Store } = await import('express-rate-limit')
    const peer = new Store()
    peer.init({ windowMs: MINUTE })
    return key => peer.increment(key)
  },
  'hono-rate-limiter': async () => {
    const { MemoryStore: Store } = await import('hono-rate-limiter')
    const peer = new Store()
    peer.init({ windowMs: MINUTE })
    return key => peer.increment(key)
  },
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
}

const stores = [
  'bare Map',
  'diana fixed-window',
  'diana token-bucket',
  'diana sliding-window',
  'express-rate-limit',
  'hono-rate-limiter',
  'rate-limiter-flexible',
]

export const title = 'memory'

export const cases = [
  { name: 'one decision, 1 000 keys', unit: 'ns/op', keys: 1000, subjects: stores },
  { name: 'one decision, 50 000 keys', unit: 'ns/op', keys: 50_000, subjects: stores },
  {
    name: 'a check by four rules',
    unit: 'ns/op',
    keys: 1000,
    subjects: ['diana check, 4 rules', 'rate-limiter-flexible, 4 limiters'],
  },
  {
    name: 'a refusal',
    unit: 'ns/op',
    keys: 1000,
    subjects: ['diana fixed-window', 'diana fixed-window, refusing', 'rate-limiter-flexible, refusing'],
  },
  {
    name: 'bytes per live key, 1 000 000 keys, beyond its text',
    unit: 'bytes',
    keys: 1_000_000,
    subjects: stores,
  },
]

/** What design asks for: `ours` must not take more than `times` of what `theirs` takes. */
export const marks = [
  ...['one decision, 1 000 keys', 'one decision, 50 000 keys'].flatMap(name => [
    { case: name, ours: 'diana fixed-window', theirs: 'bare Map', times: 1.5 },
    { case: name, ours: 'diana fixed-window', theirs: 'express-rate-limit', times: 1 },
    { case: name, ours: 'diana fixed-window', theirs: 'hono-rate-limiter', times: 1 },
    { case: name, ours: 'diana fixed-window', theirs: 'rate-limiter-flexible', times: 1 / 3 },
  ]),
  {
    case: 'a check by four rules',
    ours: 'diana check, 4 rules',
    theirs: 'rate-limiter-flexible, 4 limiters',
    times: 1 / 2,
  },
  { case: 'a refusal', ours: 'diana fixed-window, refusing', theirs: 'diana fixed-window', times: 1.1 },
  ...['fixed-window', 'token-bucket'].map(name => ({
    case: 'bytes per live key, 1 000 000 keys, beyond its text',
    ours: `diana ${name}`,
    most: 64,
  })),
  { case: 'bytes per live key, 1 000 000 keys, beyond its text', ours: 'diana sliding-window', most: 144 },
]

/** Measures one subject in this process, which does nothing else. */
export async function measure({ unit, keys: count }, subject) {
  const decide = await subjects[subject]()
  return unit === 'bytes' ? bytesPerKey(decide, count) : nanosecondsPerCall(decide, count)
}

async function nanosecondsPerCall(decide, count) {
  const isAsync = decide(keyOf(0, count), 0) instanceof Promise
  // a request never brings the very string that was stored, only one that reads the same
  for (const key of keysOf(count)) await decide(key, 0)
  const keys = keysOf(count)
  const loop = async (from, to) => {
    if (isAsync) for (let i = from; i < to; i++) await decide(keys[i % keys.length], i)
    else for (let i = from; i < to; i++) decide(keys[i % keys.length], i)
  }
  const calls = 600_000
  await loop(0, calls)
  const cpu = process.cpuUsage()
  const started = process.hrtime.bigint()
  await loop(calls, 2 * calls)
  const value = Number(process.hrtime.bigint() - started) / calls
  const { user, system } = process.cpuUsage(cpu)
  return { value, cpuNs: ((user + system) * 1000) / calls }
}

async function bytesPerKey(decide, count) {
  const used = () => {
    for (let i = 0; i < 4; i++) globalThis.gc()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const empty = used()
  const texts = keysOf(count)
  const pointer = 8
  const textBytes = used() - empty - count * pointer
  texts.length = 0
  const before = used()
  for (let i = 0; i < count; i++) await decide(keyOf(i, count), i)
  return { value: (used() - before - textBytes) / count }
}
