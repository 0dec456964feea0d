import type { Call } from 'diana-limiter'
import type { LoggedCall } from '../../../packages/gateway/src/replay/judging/judge.ts'

/** A call with its moment. */
export interface RandomCall extends LoggedCall {
  readonly call: Call
}

type Random = () => number

export function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)]!
}

/** A rule file with one to four random rules of every kind. */
export function randomRules(random: Random): object {
  const size = 1 + Math.floor(random() * 4)
  const rules = Array.from({ length: size }, (_unused, index) => randomRule(random, index))
  return { identify: { account: ['header:x-account-id'] }, rules }
}

function randomRule(random: Random, index: number): object {
  const count = pick(random, [0, 1, 2, 3, 5, 10, 20, 50])
  const period = pick(random, ['100ms', '300ms', 's', '1500ms', '2s', '10s', 'm', 'm', '5m'])
  const algorithm = pick(random, [
    'sliding-window',
    'sliding-window',
    'sliding-log',
    'fixed-window',
    'token-bucket',
    'leaky-bucket',
    'warm-up',
    'concurrency',
  ])
  const rule: Record<string, unknown> = { id: `r${index}`, algorithm, limit: `${count}/${period}` }
  const by = pick(random, [undefined, 'ip', 'account', ['ip', 'resource'], 'resource'])
  if (by !== undefined) rule.by = by
  if (random() < 0.3) rule.match = { path: pick(random, ['/a', '/b', '/a/**']) }
  if (algorithm === 'concurrency') rule.limit = count
  if (algorithm === 'token-bucket' && count > 0) {
    if (random() < 0.5) rule.burst = 1 + Math.floor(random() * 40)
    if (random() < 0.2) rule.start = 'empty'
    if (random() < 0.3) rule.refill = 'interval'
  }
  if (algorithm === 'leaky-bucket') rule.burst = Math.floor(random() * 20)
  if (algorithm === 'fixed-window') {
    const kind = pick(random, ['plain', 'plain', 'first-call', 'first-call', 'calendar'])
    if (kind === 'first-call') rule.align = kind
    if (kind === 'calendar') {
      rule.limit = `${count * 5}/day`
      rule.zone = pick(random, ['UTC', 'America/Noronha', 'America/Noronha'])
    }
  }
  if (algorithm === 'warm-up') {
    rule.warmUp = pick(random, ['1s', '10s'])
    if (count === 0) rule.limit = `1/${period}`
  }
  if (algorithm.startsWith('sliding') && random() < 0.2) rule.limit = [rule.limit, '3/s']
  const mode = random()
  if (mode < 0.12) rule.whenFull = 'shadow'
  else if (mode < 0.3 && rule.zone === undefined) {
    rule.whenFull = 'wait'
    rule.queue = { size: pick(random, [1, 5, 1000]), timeout: pick(random, ['200ms', '1s', '3s']) }
  } else if (mode < 0.4)
    rule.block = pick<unknown>(random, [
      ...['3s', '30s', '2m'],
      ...[true, false].map(clear => ({ first: '2s', max: '20s', forgetAfter: '1m', clear })),
    ])
  if (random() < 0.15) rule.cost = pick<unknown>(random, [2, 3, { from: 'header:x-cost', most: 5 }])
  if (random() < 0.25) rule.countWhen = pick(random, ['failed', '5xx', '200-399'])
  if (random() < 0.1 && algorithm !== 'concurrency') rule.resetWhen = pick(random, ['success', '404'])
  return rule
}

/** Calls of a few callers: steady ones, bursts and pauses. */
export function randomCalls(random: Random, size: number): RandomCall[] {
  const callers = 1 + Math.floor(random() * 5)
  // some minutes before midnight of the zone -02:00
  const start = 1_762_998_900_000_000 + Math.floor(random() * 300e6)
  const calls: RandomCall[] = []
  const meanGapUs = pick(random, [20_000, 100_000, 500_000])
  let at = start
  while (calls.length < size) {
    const gap = random() < 0.3 ? 0 : random() < 0.02 ? 20e6 * random() : -Math.log(1 - random()) * meanGapUs
    at += Math.floor(gap)
    const burst = random() < 0.05 ? Math.floor(random() * 40) : 1
    const caller = Math.floor(random() ** 2 * callers)
    for (let i = 0; i < burst && calls.length < size; i++) {
      at += random() < 0.5 ? 0 : Math.floor(random() * 3000)
      calls.push({
        call: {
          ...{
            method: 'GET',
            path: pick(random, ['/a', '/b', '/a/c']),
            ip: `203.0.113.${caller}`,
            caseInsensitive: true,
          },
          headers: {
            'x-account-id': random() < 0.9 ? `u${caller % 3}` : undefined,
            'x-cost': String(Math.floor(random() * 6)),
          },
        },
        at,
        turn: calls.length,
        status: pick(random, [200, 200, 200, 404, 500]),
        durationUs: Math.floor(random() < 0.1 ? random() * 3e6 : random() * 50_000),
      })
    }
  }
  return calls
}
