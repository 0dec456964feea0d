// What a user calls, by each library: a key and the number of the call in, the library's own answer out.

import { createLimiter } from '../packages/limiter/dist/index.js'

export const MINUTE = 60_000
export const PLENTY = 50_000_000

const identify = { account: ['header:x-account-id'], device: ['header:x-device-id'] }
const FOUR = { whole: undefined, account: 'account', device: 'device', resource: 'resource' }

const limitOf = count => `${count}/m`
const oneRule = (algorithm, count) => [{ id: 'account', by: 'account', limit: limitOf(count), algorithm }]
const fourRules = Object.entries(FOUR).map(([id, by]) => ({
  ...{ id, by, limit: limitOf(PLENTY), algorithm: 'fixed-window' },
}))

const callOf = key => ({ method: 'GET', path: '/orders', headers: { 'x-account-id': key } })
const callOfDevice = key => ({
  method: 'GET',
  path: '/orders',
  ip: '203.0.113.9',
  headers: { 'x-account-id': key, 'x-device-id': key },
})

const limiterOf = rules => createLimiter({ identify, rules })

const decide = algorithm => async () => {
  const limiter = await limiterOf(oneRule(algorithm, PLENTY))
  return key => limiter.decide(callOf(key))
}

const check = algorithm => async () => {
  const limiter = await limiterOf(oneRule(algorithm, PLENTY))
  return key => limiter.check(callOf(key))
}

async function flexible(points) {
  const { RateLimiterMemory } = await import('rate-limiter-flexible')
  return new RateLimiterMemory({ points, duration: MINUTE / 1000 })
}

/** The least that any count of keys costs: a Map that is read and written. */
export function bareMap() {
  const map = new Map()
  return key => map.set(key, (map.get(key) ?? 0) + 1)
}

/** The least that a decision costs: a call is made, the clock is read, its key is found, and an object is returned. */
function clockAndMap() {
  const map = new Map()
  return key => {
    const call = callOf(key)
    const [seconds, ns] = process.hrtime()
    const name = call.headers['x-account-id']
    const count = map.get(name)
    if (count === undefined) map.set(name, 1)
    return { allowed: true, call, count, now: seconds * 1e6 + Math.floor(ns / 1000) }
  }
}

async function limiterPerKey() {
  const { RateLimiter } = await import('limiter')
  const peers = new Map()
  return key => {
    let peer = peers.get(key)
    if (peer === undefined) {
      peer = new RateLimiter({ tokensPerInterval: PLENTY, interval: MINUTE })
      peers.set(key, peer)
    }
    return peer.tryRemoveTokens(1)
  }
}

export const oneRuleCalls = {
  'bare Map': bareMap,
  'clock, bare Map and an answer': clockAndMap,
  'diana decide, fixed-window': decide('fixed-window'),
  'diana decide, sliding-window': decide('sliding-window'),
  'diana decide, token-bucket': decide('token-bucket'),
  'diana decide, fixed-window, decisions read': async () => {
    const limiter = await limiterOf(oneRule('fixed-window', PLENTY))
    return key => limiter.decide(callOf(key)).decisions[0].remaining
  },
  'diana check, fixed-window': check('fixed-window'),
  'diana check, sliding-window': check('sliding-window'),
  'rate-limiter-flexible consume': async () => {
    const peer = await flexible(PLENTY)
    return key => peer.consume(key)
  },
  'limiter tryRemoveTokens, one per key in a Map': limiterPerKey,
}

export const fourRuleCalls = {
  'diana decide, four rules': async () => {
    const limiter = await limiterOf(fourRules)
    return key => limiter.decide(callOfDevice(key))
  },
  'diana check, four rules': async () => {
    const limiter = await limiterOf(fourRules)
    return key => limiter.check(callOfDevice(key))
  },
  'rate-limiter-flexible, four consume': async () => {
    const peers = await Promise.all([1, 2, 3, 4].map(() => flexible(PLENTY)))
    const keysOf = key => ['all', key, key, '/orders']
    return key => Promise.all(keysOf(key).map((one, i) => peers[i].consume(one)))
  },
}

export const refusals = {
  'diana decide, fixed-window, refusing': async () => {
    const limiter = await limiterOf(oneRule('fixed-window', 0))
    return key => limiter.decide(callOf(key))
  },
  'rate-limiter-flexible consume, refusing': async () => {
    const peer = await flexible(0)
    return key => peer.consume(key).catch(refused => refused)
  },
}

export const calls = { ...oneRuleCalls, ...fourRuleCalls, ...refusals }
