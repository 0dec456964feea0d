// A fleet of processes that lease permits of one store: the code of production on virtual time, behind a simulated network.
import { seededRandom } from '../helpers/seeded-random.mjs'
import { VirtualTime } from './virtual-time.mjs'

/** Calls are offered in steps of this time. */
const STEP_MS = 1
/** What Redis is assumed to need for one call that it decides, and for one request of a lease: more than was measured. */
export const CALL_US = 8
export const LEASE_US = 65
const RETRANSMIT_MS = 200
const MOST_TRIES = 3

/**
 * One run. `parts` holds the classes under test. Options: `algorithm`, `limit` (per second), `processes`, `load` (offered calls as a
 * multiple of the limit), `keys` with `skew` (Zipf), `seconds`, `latencyMs`, `loss`, `duplicates`, `partitions`, `crashes`, `drift`,
 * `onOff` (processes that call by turns), `isLeased`.
 */
export async function simulateLeases({ LeaseBook, LeasingStore, DenyCache, sharedCharge, algorithms }, options) {
  const { algorithm, limit, processes, load, keys = 1, skew = 1, seconds = 3, seed, isLeased = true } = options
  const { latencyMs = 0.5, loss = 0, duplicates = 0, cuts = 0, crashes = 0, drift = 0, onOff = false } = options
  const time = new VirtualTime()
  const random = seededRandom(seed)
  const store = new LeasingStore()
  const began = store.now
  const meters = [
    algorithms
      .find(({ name }) => name === algorithm)
      .meter({ count: limit, periodMs: 1000 }, burstOf(algorithm, limit)),
  ]
  const counter = store.createCounter({
    id: 'rule',
    meters,
    algorithm,
    enforced: true,
    lease: isLeased ? 'auto' : 'off',
  })
  const names = Array.from({ length: keys }, (_, i) => `key-${i}`)
  const pickKey = zipf(keys, skew, random)
  /** Calls that passed: when, by the clock of the store, as an interval. */
  const passed = new Map(names.map(name => [name, []]))
  const totals = { calls: 0, passed: 0, refused: 0 }
  let members = 0
  const tick = () => {
    store.now = began + Math.round(time.now * 1000)
  }

  const startProcess = (place, fromMs) => {
    const id = `${place}-${members++}`
    const rate = 1 + (random() * 2 - 1) * drift
    let isAlive = true
    let cutUntil = 0
    const now = () => 1e9 + Math.round(time.now * 1000 * rate)
    const travel = () => {
      let ms = latencyMs * (0.5 + random())
      for (let wait = RETRANSMIT_MS; random() < loss; wait *= 2) ms += wait
      return ms
    }
    const ask = run =>
      new Promise((resolve, reject) => {
        const isCut = time.now < cutUntil
        const arrive = () => {
          if (isCut) return
          tick()
          const answer = run()
          // the reply is lost if the connection breaks meanwhile
          time.after(travel(), () =>
            isAlive ? (time.now < cutUntil ? reject(new Error('lost')) : resolve(answer)) : undefined,
          )
        }
        if (isCut) time.after(400, () => reject(new Error('away')))
        time.after(travel(), arrive)
        if (random() < duplicates) time.after(travel() + 300 * random(), arrive)
      })
    const denials = new DenyCache()
    const chargeOf = (key, more) =>
      Object.assign(sharedCharge(counter, undefined, 'share'), { key, mayWait: false, cost: 1 }, more)
    const book = new LeaseBook({
      request: request => ask(() => store.lease(id, request)),
      mayAsk: () => isAlive && time.now >= cutUntil,
      processes: () => processes,
      now,
      schedule: (run, ms) => time.after(ms, () => isAlive && run()),
      isDenied: (charge, at) => denials.denies(charge, at),
      onReport: ({ key }, _, { delays, remaining, resets }, askedAt) => {
        if (delays.some(delay => delay > 0))
          denials.learn([chargeOf(key, { delays, remaining, resets, fits: false })], askedAt)
        else denials.forget(counter, key)
      },
      onRefund: () => {},
    })
    const call = (key, charge, mayWait = true, tries = 1, askedAt = undefined) => {
      if (!charge) totals.calls++
      charge ??= chargeOf(key)
      const at = now()
      const rest = book.take([charge], at, mayWait)
      if ('answered' in rest) {
        const goOn = asked => isAlive && call(key, charge, !rest.isLast, tries, rest.isLast ? asked : undefined)
        return void rest.answered.then(goOn)
      }
      if (rest.length > 0 && denials.refuses(rest, askedAt ?? at)) return void totals.refused++
      const pass = (start, end) => {
        totals.passed++
        passed.get(key).push(start, end)
      }
      if (rest.length === 0) return pass(time.now, time.now)
      if (time.now < cutUntil) return void totals.refused++
      const startedAt = time.now
      ask(() => store.take([charge])).then(
        ({ allowed }) => {
          if (allowed) return pass(startedAt, time.now)
          if (!book.holdsBack(charge)) denials.learn([charge], at)
          const again = tries < MOST_TRIES ? book.afterRefusal([charge], now()) : undefined
          if (again) again.then(() => isAlive && call(key, charge, false, tries + 1))
          else totals.refused++
        },
        () => {},
      )
      book.meet(rest, at)
    }
    const perMs = (limit * load * keysLoad(keys)) / processes / 1000
    let due = random()
    const work = () => {
      if (!isAlive || time.now >= seconds * 1000) return
      const isOn = !onOff || Math.floor(time.now / 700 + place * 0.37) % 2 === 0
      due += perMs * (isOn ? (onOff ? 2 : 1) : 0) * STEP_MS * (0.5 + random())
      for (; due >= 1; due--) call(names[pickKey()])
      time.after(STEP_MS, work)
    }
    time.at(fromMs, work)
    return {
      kill: () => {
        isAlive = false
      },
      cut: ms => {
        cutUntil = time.now + ms
      },
      held: () => book.stats.permits,
    }
  }

  const fleet = Array.from({ length: processes }, (_, place) => startProcess(place, 0))
  for (let i = 0; i < crashes; i++) {
    time.at(random() * seconds * 900, () => {
      const place = Math.floor(random() * processes)
      fleet[place].kill()
      fleet[place] = startProcess(place, time.now + 100)
    })
  }
  for (let i = 0; i < cuts; i++) {
    time.at(random() * seconds * 900, () => fleet[Math.floor(random() * processes)].cut(random() * 1500))
  }
  await time.run(seconds * 1000, () => false)
  const { calls, leases } = store.asked
  const busyMs = (calls * CALL_US + leases * LEASE_US) / 1000 / seconds
  let over = 0
  let used = 0
  for (const moments of passed.values()) {
    over = Math.max(over, exceeded(moments, algorithm, limit))
    used += moments.length / 2
  }
  const possible =
    keys === 1
      ? Math.min(load, 1) * limit * seconds + (algorithm === 'token-bucket' && load > 1 ? limit : 0)
      : undefined
  return {
    over,
    used: possible && used / Math.min(possible, totals.calls),
    asked: (calls + leases) / totals.calls,
    perSecond: (calls + leases) / seconds,
    busyMs,
    direct: calls / seconds,
    ...totals,
  }
}

function burstOf(algorithm, limit) {
  return algorithm === 'token-bucket' ? { burst: limit } : {}
}

function keysLoad(keys) {
  return keys === 1 ? 1 : Math.min(keys, 20)
}

/** Picks keys so that the n-th is picked in proportion to n^-skew. */
function zipf(keys, skew, random) {
  if (keys === 1) return () => 0
  const sums = []
  let sum = 0
  for (let i = 1; i <= keys; i++) {
    sum += i ** -skew
    sums.push(sum)
  }
  return () => {
    const at = random() * sum
    let [low, high] = [0, keys - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (sums[middle] < at) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** By how many calls the limit is exceeded for certain, whenever each call was decided between its start and its end. */
export function exceeded(moments, algorithm, limit) {
  const calls = []
  for (let i = 0; i < moments.length; i += 2) calls.push([moments[i], moments[i + 1]])
  if (algorithm === 'token-bucket') return bucketExcess(calls, limit)
  const starts = calls.map(([start]) => start).sort((a, b) => a - b)
  const ends = calls.map(([, end]) => end).sort((a, b) => a - b)
  let worst = 0
  if (algorithm === 'fixed-window') {
    const windows = new Map()
    for (const [start, end] of calls) {
      const window = Math.floor(start / 1000)
      if (Math.floor(end / 1000) === window) windows.set(window, (windows.get(window) ?? 0) + 1)
    }
    for (const count of windows.values()) worst = Math.max(worst, count - limit)
    return worst
  }
  // calls that started at or after t and ended before t + 1 s: at least ended-before less started-before
  let ended = 0
  for (let i = 0; i < starts.length; i++) {
    while (ended < ends.length && ends[ended] < starts[i] + 1000) ended++
    worst = Math.max(worst, ended - i - limit)
  }
  return worst
}

/** The same for a bucket: in each interval no more than the burst and what was refilled. */
function bucketExcess(calls, limit) {
  const events = calls
    .flatMap(([start, end]) => [
      [start, 0],
      [end, 1],
    ])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1])
  let [worst, started, ended, least] = [0, 0, 0, Number.POSITIVE_INFINITY]
  for (const [at, isEnd] of events) {
    const refilled = (at * limit) / 1000
    if (!isEnd) least = Math.min(least, started++ - refilled)
    else worst = Math.max(worst, ++ended - refilled - least - limit)
  }
  return Math.max(0, Math.floor(worst + 1e-6))
}
