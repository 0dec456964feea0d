/**
 * Limiters written for nothing but to be plainly right: they keep every call they admitted and count in whole numbers
 * of any size. An oracle answers with the moment at which a call passes, or undefined.
 */
export type Oracle = (now: number, cost: number) => number | undefined

export interface Numbers {
  readonly count: number
  readonly periodUs: number
  readonly maxWaitUs: number
}

/** Tokens come `count` per period, `capacity` fit; a token is counted as `periodUs` parts. */
export function bucketOracle({ count, periodUs, maxWaitUs }: Numbers, capacity: number): Oracle {
  const [rate, token] = [BigInt(count), BigInt(periodUs)]
  const full = BigInt(capacity) * token
  let tokens = full
  let last = 0n
  return (now, cost) => {
    if (cost === 0) return now
    if (cost > capacity) return undefined
    const from = max(BigInt(now), last)
    const there = min(full, tokens + (from - last) * rate)
    const missing = BigInt(cost) * token - there
    const passes = missing <= 0n ? from : from + (missing + rate - 1n) / rate
    if (Number(passes) - now > maxWaitUs) return undefined
    tokens = min(full, there + (passes - from) * rate) - BigInt(cost) * token
    last = passes
    return Number(passes)
  }
}

/** Refills a bucket: `count` tokens come at once at the end of every period; periods follow on from the call that found the bucket full. */
export function intervalOracle({ count, periodUs, maxWaitUs }: Numbers, capacity: number): Oracle {
  let tokens = capacity
  let refilledAt = 0
  let last = 0
  return (now, cost) => {
    if (cost === 0) return now
    if (cost > capacity) return undefined
    const from = Math.max(now, last)
    const past = Math.max(0, Math.floor((from - refilledAt) / periodUs))
    const there = Math.min(capacity, tokens + past * count)
    let after = there
    let refills = past
    while (after < cost) {
      after = Math.min(capacity, after + count)
      refills++
    }
    const waitsFor = there >= cost ? from : refilledAt + refills * periodUs
    if (waitsFor - now > maxWaitUs) return undefined
    // a full bucket begins its next period with the call that finds it full
    refilledAt = there === capacity ? waitsFor : refilledAt + refills * periodUs
    tokens = after - cost
    last = refilledAt > now ? refilledAt : 0
    return waitsFor
  }
}

/** Refills a bucket: `count` tokens come at once at every whole multiple of the period. */
export function alignedOracle({ count, periodUs, maxWaitUs }: Numbers, capacity: number): Oracle {
  let tokens = capacity
  let period = 0
  let last = 0
  return (now, cost) => {
    if (cost === 0) return now
    if (cost > capacity) return undefined
    const from = Math.max(now, last)
    const current = Math.max(period, Math.floor(from / periodUs))
    const there = Math.min(capacity, tokens + (current - period) * count)
    const periods = Math.max(0, Math.ceil((cost - there) / count))
    const passes = periods === 0 ? from : (current + periods) * periodUs
    if (passes - now > maxWaitUs) return undefined
    tokens = Math.min(capacity, there + periods * count) - cost
    period = current + periods
    last = passes > now ? passes : 0
    return passes
  }
}

/** Counts by nginx's own formula, in parts of a call instead of thousandths: counted when a call arrives, not when it passes. */
export function nginxOracle({ count, periodUs }: Numbers, burst: number, delay: number): Oracle {
  const [rate, call] = [BigInt(count), BigInt(periodUs)]
  let excess: bigint | undefined
  let last = 0n
  return (now, cost) => {
    if (cost === 0) return now
    const known = excess ?? -call
    const after = max(-call, known - (BigInt(now) - last) * rate) + BigInt(cost) * call
    if (after > BigInt(burst) * call) return undefined
    excess = after
    last = BigInt(now)
    const over = after - BigInt(delay) * call
    return over <= 0n ? now : now + Number((over + rate - 1n) / rate)
  }
}

/** Keeps every call; `count` may lie in any half-open interval of the period. */
export function logOracle({ count, periodUs, maxWaitUs }: Numbers): Oracle {
  const log: { readonly moment: number; readonly cost: number }[] = []
  const within = (moment: number): number =>
    log.reduce((sum, call) => (call.moment > moment - periodUs ? sum + call.cost : sum), 0)
  return (now, cost) => {
    if (cost === 0) return now
    if (cost > count) return undefined
    const from = Math.max(now, log.at(-1)?.moment ?? 0)
    const moments = [from, ...log.map(({ moment }) => moment + periodUs).filter(leaves => leaves > from)]
    const passes = moments.find(moment => within(moment) + cost <= count)!
    if (passes - now > maxWaitUs) return undefined
    log.push({ moment: passes, cost })
    return passes
  }
}

/** Counts by window, windows beginning at multiples of the period or with the first call. */
export function windowOracle({ count, periodUs, maxWaitUs }: Numbers, aligned: boolean): Oracle {
  const counts = new Map<number, number>()
  let latest = Number.NEGATIVE_INFINITY
  return (now, cost) => {
    if (cost === 0) return now
    if (cost > count) return undefined
    const current = aligned ? Math.floor(now / periodUs) * periodUs : windowOf(now, latest, periodUs)
    let window = Math.max(current, latest)
    if ((counts.get(window) ?? 0) + cost > count) window += periodUs
    const passes = Math.max(now, window)
    if (passes - now > maxWaitUs) return undefined
    counts.set(window, (counts.get(window) ?? 0) + cost)
    latest = window
    return passes
  }
}

/** Finds the window of `now`, where windows follow on one another from the latest; after that has ended a new one begins. */
function windowOf(now: number, latest: number, periodUs: number): number {
  if (now >= latest + periodUs) return now
  return latest - Math.ceil((latest - now) / periodUs) * periodUs
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}
