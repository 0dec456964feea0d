const KEPT = 300
/** The gateway names no more rules in one answer about the past. */
const MOST_RULES = 1000

interface Counts {
  allowed: number
  refused: number
  waited: number
  shadowRefused: number
}

/** Figures that look like traffic: the same second always gives the same numbers. */
export class Figures {
  readonly #rules: readonly string[]

  constructor(rules: readonly string[]) {
    this.#rules = rules
  }

  second(at: number): unknown {
    const rules = Object.fromEntries(
      this.#rules.map((id, index) => [
        id,
        { ...countsOf(index, at), load: loadOf(index, at), leased: leasedOf(index, at) },
      ]),
    )
    const permits = this.#rules.reduce((sum, _, index) => sum + leasedOf(index, at), 0)
    const { allowed } = countsOf(0, at)
    const store = { asked: 8, decidedHere: 3, leases: { keys: 5, permits, decided: allowed, requests: 6 } }
    const total = { ...this.#total(at), waiting: Math.round(2 + 2 * Math.sin(at / 9)) }
    return {
      at: at * 1000,
      total,
      rules,
      store,
      adaptive: { reports: estimateAt(at) },
      overload: overloadAt(at),
      costs: costsAt(at),
    }
  }

  history(): unknown {
    const last = Math.floor(Date.now() / 1000) - 1
    const seconds = Array.from({ length: KEPT }, (_, index) => last - KEPT + 1 + index)
    const series = (read: (at: number) => Counts) => {
      const counts = seconds.map(read)
      return {
        allowed: counts.map(one => one.allowed),
        refused: counts.map(one => one.refused),
        waited: counts.map(one => one.waited),
        shadowRefused: counts.map(one => one.shadowRefused),
      }
    }
    const busiest = this.#rules.slice(0, MOST_RULES)
    const rules = Object.fromEntries(busiest.map((id, index) => [id, series(at => countsOf(index, at))]))
    const found = seconds.map(estimateAt)
    const reports = {
      limit: found.map(({ limit }) => limit),
      inFlight: found.map(({ inFlight }) => inFlight),
      latencyMs: found.map(({ latencyMs }) => latencyMs),
    }
    const shed = { default: seconds.map(() => 0), sheddable: seconds.map(at => overloadAt(at).shed.sheddable) }
    const overload = { share: seconds.map(at => overloadAt(at).share), shed }
    const total = series(at => this.#total(at))
    return { at: last * 1000, stepMs: 1000, total, rules, loads: {}, adaptive: { reports }, overload }
  }

  /** Returns the figures of a longer time: the numbers of one second stand for a whole step. */
  range(seconds: number, rule: string | null): unknown {
    const step = Math.max(5, Math.ceil(seconds / 360))
    const to = Math.floor(Date.now() / 1000 / step) * step
    const count = Math.ceil(seconds / step)
    const index = this.#rules.indexOf(rule ?? '')
    const read = (at: number) => scaled(index < 0 ? this.#total(at) : countsOf(index, at), step)
    const series = (end: number) => {
      const counts = Array.from({ length: count }, (_, i) => read(end - (count - i) * step))
      return Object.fromEntries(NAMES.map(name => [name, counts.map(one => one[name])]))
    }
    const sums = (id: number, at: number) => scaled(countsOf(id, at), seconds)
    return {
      ...{ scope: 'fleet', from: (to - count * step) * 1000, to: to * 1000, stepMs: step * 1000 },
      ...{ series: series(to), before: series(to - count * step) },
      rules: this.#rules.slice(0, MOST_RULES).map((id, i) => ({ id, ...sums(i, to), before: sums(i, to - seconds) })),
      processes: [1, 2, 3, 4].map(i => ({ name: `web-${i}:7`, ...scaled(this.#total(to - i), seconds / 4) })),
    }
  }

  callers(unmask: boolean): unknown[] {
    const names = ['account=ann', 'account=<script>alert(1)</script>', 'ip=203.0.113.9', `device=${'x'.repeat(10_000)}`]
    const calls = Array.from({ length: 30 }, (_, step) => Math.round(20 + 15 * Math.sin(step)))
    return names.map((name, index) => ({
      id: `caller-${index}`,
      rule: this.#rules[index % this.#rules.length],
      key: unmask ? name : name.replace(/=.*/, `=${'•'.repeat(4)}`),
      masked: !unmask,
      calls: 2000 >> index,
      callsError: 0,
      refused: 900 >> index,
      error: index * 3,
      firstAt: Date.now() - 600_000,
      lastAt: Date.now() - index * 4000,
      canBlock: true,
      limit: 20,
      periodMs: 60_000,
      remaining: index * 5,
      timeline: { stepMs: 20_000, calls, refused: calls.map(count => Math.round(count / 3)) },
    }))
  }

  refusals(): unknown[] {
    return ['/orders', '/login', `/reports/${'long/'.repeat(60)}`].map((path, index) => ({
      at: Date.now() - index * 3000,
      rule: this.#rules[index % this.#rules.length],
      caller: `caller-${index}`,
      key: 'account=••••',
      masked: true,
      reason: 'limit',
      method: 'POST',
      path,
      limit: 20,
      periodMs: 60_000,
      remaining: 0,
      retryAfterMs: 1200 * (index + 1),
      unsaid: index * 7,
    }))
  }

  #total(at: number): Counts {
    const all = this.#rules.map((_, index) => countsOf(index, at))
    const sum = (name: keyof Counts) => all.reduce((total, counts) => total + counts[name], 0)
    return {
      allowed: countsOf(0, at).allowed,
      refused: sum('refused'),
      waited: sum('waited'),
      shadowRefused: sum('shadowRefused'),
    }
  }
}

const NAMES = ['allowed', 'refused', 'waited', 'shadowRefused'] as const

function scaled(counts: Counts, factor: number): Counts {
  return Object.fromEntries(NAMES.map(name => [name, Math.round(counts[name] * factor)])) as unknown as Counts
}

function countsOf(rule: number, at: number): Counts {
  const noise = (salt: number) => Math.abs(Math.sin(at * 12.9898 + rule * 78.233 + salt) * 43758.5453) % 1
  const wave = 1 + 0.35 * Math.sin(at / 40 + rule)
  const size = 3 + 180 / (1 + rule)
  const isBusy = rule % 3 === 1 && noise(2) > 0.4
  return {
    allowed: Math.round(size * wave + noise(1) * size * 0.3),
    refused: isBusy ? Math.round(noise(3) * (4 + size * 0.4)) : 0,
    waited: rule % 7 === 5 ? Math.round(noise(4) * 4) : 0,
    shadowRefused: rule % 7 === 6 ? Math.round(noise(5) * 6) : 0,
  }
}

function leasedOf(rule: number, at: number): number {
  return rule % 4 === 0 ? Math.round(40 / (1 + rule) + 5 * Math.sin(at / 5)) : 0
}

function loadOf(rule: number, at: number): number {
  return Math.min(1, 0.15 + ((rule * 37) % 100) / 110 + 0.15 * Math.sin(at / 7 + rule))
}

/** Returns the findings of an adaptive rule in front of a service that is overloaded now and then. */
function estimateAt(at: number) {
  const wave = Math.sin(at / 25)
  const limit = Math.round(24 + 6 * wave)
  const latencyMs = 50 + Math.max(0, 20 * wave)
  return { limit, inFlight: Math.round(limit * 0.9), perSecond: 480, baseMs: 50, latencyMs, limiting: wave > 0 }
}

function overloadAt(at: number) {
  const excess = Math.max(0, Math.sin(at / 25))
  const shed = { default: 0, sheddable: Math.round(12 * excess) }
  return { delayMs: 3 + 18 * excess, utilization: 0.6 + 0.4 * excess, waitMs: 1, share: 1 - 0.2 * excess, shed }
}

/** Returns the costs of a rule that counts tokens: it reserves a little more than is used. */
function costsAt(at: number) {
  const calls = at % 100_000
  const amounts = {
    reserved: calls * 900,
    settled: calls * 610,
    released: calls * 300,
    expired: 40,
    overrun: calls * 10,
  }
  const settled = {
    usage: calls,
    header: 0,
    estimate: Math.floor(calls / 50),
    none: Math.floor(calls / 80),
    bounded: 0,
  }
  return { tokens: { amounts, settled } }
}
