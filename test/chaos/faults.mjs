import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { moment } from './fleet/clock.mjs'
import { startProxy } from './proxy.mjs'
import { startCluster, startRedis, untilWhole } from './redis.mjs'
import { rules } from './rules.mjs'

const limiterBy = ({ port }) => ({ store: { redis: `redis://127.0.0.1:${port}`, fleet: 3 }, rules })

/** One Redis behind a way that can fail. */
async function single() {
  const redis = await startRedis()
  const proxy = await startProxy(redis.port)
  return {
    ...{ redis, proxy },
    limiter: limiterBy(proxy),
    async close() {
      await proxy.close()
      await redis.close()
    },
  }
}

/** One Redis, and a way of its own for the first process. */
async function apart() {
  const scene = await single()
  const own = await startProxy(scene.redis.port)
  return {
    ...scene,
    own,
    limiterOf: index => (index === 0 ? limiterBy(own) : scene.limiter),
    async close() {
      await own.close()
      await scene.close()
    },
  }
}

async function cluster() {
  const { nodes, urls } = await startCluster()
  return {
    nodes,
    limiter: { store: { redis: urls, fleet: 3 }, rules },
    async close() {
      for (const node of nodes) await node.close()
    },
  }
}

/** Redis, and a config center over HTTP whose answers the test sets. */
async function center() {
  const scene = await single()
  let answer = response => response.end(JSON.stringify({ rules }))
  const server = createServer((_, response) => answer(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const local = rules.map(rule => ({ ...rule, limit: '1000/s', algorithm: 'sliding-window', burst: undefined }))
  const remote = { http: `http://127.0.0.1:${server.address().port}/`, interval: '100ms', startTimeout: '10s' }
  return {
    ...scene,
    limiter: { ...scene.limiter, rules: JSON.parse(JSON.stringify(local)), remote },
    say(next) {
      answer = next
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await scene.close()
    },
  }
}

/** A Redis, and another one that knows nothing. */
async function spare() {
  const scene = await single()
  const other = await startRedis()
  return {
    ...scene,
    other,
    async close() {
      await other.close()
      await scene.close()
    },
  }
}

/** A Redis with so much in it that it takes seconds to start. */
async function large() {
  const scene = await single()
  const pipeline = scene.redis.client.pipeline()
  for (let i = 0; i < 2500; i++) pipeline.set(`filler:${i}`, 'x'.repeat(500))
  await pipeline.exec()
  return scene
}

/** A master and its replica; what the master counts while the replica is deaf is lost when it fails. */
async function pair() {
  const scene = await single()
  const replica = await startRedis()
  await replica.client.replicaof('127.0.0.1', scene.redis.port)
  while (!String(await replica.client.info('replication')).includes('master_link_status:up')) await pause(20)
  return {
    ...scene,
    replica,
    async close() {
      await replica.close()
      await scene.close()
    },
  }
}

async function repeatedly(ms, everyMs, move) {
  for (let i = 0; i < ms / everyMs; i++) {
    await move(i)
    await pause(everyMs)
  }
}

/** What calls in flight at each of some flushes can cost. */
const inFlight = flushes => Object.fromEntries(rules.map(({ id }) => [id, (id === 'busy' ? 40 : 4) * flushes]))

/** Calls under way beyond a process's share when an outage begins are not sent away. */
const underWay = { slots: 3 }

const usual = {
  allowance: underWay,
  scene: single,
  processes: 3,
  beforeMs: 1700,
  lastsMs: 2000,
  isQuiet: false,
  isShort: false,
}

/**
 * Everything that goes wrong: `begin` breaks it, and after `lastsMs` `end` mends it. What Redis forgets of itself, since a
 * replica has not heard of it, is what it counted since `deafSince`; no limiter can know. A fault is quiet where calls go
 * on being counted by the fleet, and stalling where the processes themselves stand still. Its `allowance` is how many calls of a
 * rule may be over, as docs/reliability.md states it. Those that are `isShort` run with the tests.
 */
export const faults = [
  {
    name: 'kill -9, restart with its data',
    begin: ({ redis }) => redis.stop(),
    end: ({ redis }) => redis.start(),
  },
  {
    name: 'kill -9, restart empty',
    isShort: true,
    allowance: { ...underWay, bucket: 6, busy: 60 },
    begin: ({ redis }) => redis.stop(),
    end: ({ redis }) => redis.start({ isEmpty: true }),
  },
  {
    name: 'silent for 80 ms, every 500 ms, with a shared pace',
    isQuiet: true,
    hasPace: true,
    lastsMs: 0,
    begin: ({ redis }) => repeatedly(4000, 500, () => redis.client.call('CLIENT', 'PAUSE', '80', 'ALL')),
    end: () => {},
  },
  {
    name: 'FLUSHALL',
    isQuiet: true,
    allowance: inFlight(1),
    begin: ({ redis }) => redis.client.flushall(),
    end: () => {},
  },
  {
    name: 'FLUSHALL three times a second',
    isQuiet: true,
    allowance: inFlight(7),
    lastsMs: 0,
    begin: ({ redis }) => repeatedly(2000, 330, () => redis.client.flushall()),
    end: () => {},
  },
  {
    name: 'answers late by up to 150 ms',
    begin: ({ proxy }) => proxy.delay(() => Math.random() * 75),
    end: ({ proxy }) => proxy.delay(0),
  },
  {
    name: 'each process stalls for 150 ms, again and again',
    isQuiet: true,
    isStalling: true,
    lastsMs: 0,
    begin: ({ fleet }) =>
      repeatedly(3000, 100, async turn => {
        fleet.signal(turn % 3, 'SIGSTOP')
        await pause(150)
        fleet.signal(turn % 3, 'SIGCONT')
      }),
    end: () => {},
  },
  {
    name: 'five processes have just started, then silence',
    processes: 5,
    beforeMs: 100,
    begin: ({ proxy }) => proxy.silence(true),
    end: ({ proxy }) => proxy.silence(false),
  },
  {
    name: 'eight processes have just started, then connection refused',
    processes: 8,
    beforeMs: 100,
    begin: ({ proxy }) => proxy.shut(),
    end: ({ proxy }) => proxy.open(),
  },
  {
    name: 'one process cut off alone',
    scene: apart,
    // a share of each limit in each period
    allowance: { window: 20, short: 10, bucket: 90, busy: 900, quota: 8, fresh: 8, levels: 20, slots: 4, callers: 2 },
    begin: ({ own }) => own.shut(),
    end: ({ own }) => own.open(),
  },
  {
    name: 'kill -9, and callers move to other processes',
    callersMove: true,
    // a share of each process that did not know the caller
    allowance: { slots: 3, callers: 4 },
    begin: ({ redis }) => redis.stop(),
    end: ({ redis }) => redis.start(),
  },
  {
    name: 'frozen (SIGSTOP)',
    lastsMs: 10_000,
    begin: ({ redis }) => redis.kill('SIGSTOP'),
    end: ({ redis }) => redis.kill('SIGCONT'),
  },
  {
    name: '500 ms latency',
    begin: ({ proxy }) => proxy.delay(500),
    end: ({ proxy }) => proxy.delay(0),
  },
  {
    name: 'black hole, half-open connections',
    isShort: true,
    begin: ({ proxy }) => proxy.silence(true),
    end: ({ proxy }) => proxy.silence(false),
  },
  {
    name: 'connection refused',
    begin: ({ proxy }) => proxy.shut(),
    end: ({ proxy }) => proxy.open(),
  },
  {
    name: 'flapping every 300 ms',
    lastsMs: 0,
    begin: ({ proxy }) => repeatedly(3000, 300, i => (i % 2 ? proxy.open() : proxy.shut())),
    end: ({ proxy }) => proxy.open(),
  },
  {
    name: 'SCRIPT FLUSH and FUNCTION FLUSH every 50 ms',
    isQuiet: true,
    lastsMs: 0,
    begin: ({ redis }) =>
      repeatedly(2000, 50, () =>
        Promise.all([redis.client.script('FLUSH'), redis.client.call('FUNCTION', 'FLUSH', 'ASYNC')]),
      ),
    end: () => {},
  },
  {
    name: 'maxmemory reached',
    begin: ({ redis }) => redis.client.config('SET', 'maxmemory', '1'),
    end: ({ redis }) => redis.client.config('SET', 'maxmemory', '0'),
  },
  {
    name: 'failover to a read-only replica with lost writes',
    scene: pair,
    lastsMs: 1500,
    losesMs: 500,
    async begin({ redis, proxy, replica }) {
      const deafSince = moment()
      await replica.client.replicaof('127.0.0.1', 1)
      await pause(500)
      await redis.stop()
      const beganAt = moment()
      proxy.lead(replica.port)
      return { deafSince, beganAt }
    },
    end: ({ replica }) => replica.client.replicaof('NO', 'ONE'),
  },
  {
    name: 'failover to an empty Redis, with live connections to it at once',
    allowance: { ...inFlight(1), ...underWay },
    scene: spare,
    lastsMs: 1000,
    async begin({ redis, proxy, other }) {
      await redis.stop()
      proxy.lead(other.port)
    },
    end: () => {},
  },
  {
    name: 'LOADING after a restart',
    scene: large,
    lastsMs: 1000,
    async begin({ redis }) {
      await redis.stop()
      const slowly = ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024']
      await redis.start({ waits: false, args: slowly })
    },
    end: ({ redis }) => redis.client.ping(),
  },
  {
    name: 'wrong password',
    async begin({ redis }) {
      await redis.client.config('SET', 'requirepass', 'changed')
      await redis.client.client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    },
    end: ({ redis }) => redis.client.config('SET', 'requirepass', ''),
  },
  {
    name: 'a node of a Cluster lost',
    scene: cluster,
    begin: ({ nodes }) => nodes[0].stop(),
    async end({ nodes }) {
      await nodes[0].start()
      await untilWhole(nodes)
    },
  },
  {
    name: 'started while Redis is down',
    isDownAtStart: true,
    begin: () => {},
    end: ({ proxy }) => proxy.open(),
  },
  {
    name: 'clocks of two processes wrong by ±10 min, and kill -9',
    shiftMs: [600_000, -600_000],
    begin: ({ redis }) => redis.stop(),
    end: ({ redis }) => redis.start(),
  },
  {
    name: 'config center down',
    scene: center,
    isQuiet: true,
    begin: ({ say }) => say(response => response.destroy()),
    end: ({ say }) => say(response => response.end(JSON.stringify({ rules }))),
  },
  {
    name: 'config center empty',
    scene: center,
    isQuiet: true,
    begin: ({ say }) => say(response => response.end('')),
    end: ({ say }) => say(response => response.end(JSON.stringify({ rules }))),
  },
  {
    name: 'config center sends garbage',
    scene: center,
    isQuiet: true,
    begin: ({ say }) => say(response => response.end('{ rules: [ { id: 7, limit: lots } <html>')),
    end: ({ say }) => say(response => response.end(JSON.stringify({ rules }))),
  },
  {
    name: 'config center never answers',
    scene: center,
    isQuiet: true,
    begin: ({ say }) => say(() => {}),
    end: ({ say }) => say(response => response.end(JSON.stringify({ rules }))),
  },
].map(fault => ({ ...usual, ...fault }))
