import type { Limit, Meter } from '../../algorithms/algorithm.ts'
import { OneKey } from '../one-key.ts'
import { costFrom, type Dice, nextMoment, startFrom } from '../walk.ts'

/** A meter, the limit that its moments are chosen by, and the largest cost that ever fits, or is tried. */
export interface WalkedMeter {
  readonly limit: Limit
  readonly meter: Meter
  readonly most: number
}

/** Makes random calls of one key; `visit` sees the key before each of them. */
export function walk(
  { limit, meter, most }: WalkedMeter,
  start: number,
  steps: readonly Dice[],
  visit: (key: OneKey, now: number, cost: number, step: Dice) => void,
): void {
  const key = new OneKey(meter)
  let now = startFrom(start)
  let retryUs = 0
  for (const step of steps) {
    now = nextMoment(now, step, limit, retryUs)
    const cost = costFrom(step, most)
    retryUs = key.delay(now, cost) - meter.maxWaitUs
    key.begin(now)
    visit(key, now, cost, step)
    key.take(now, cost)
  }
}

/** Moments at which a difference between two states would show. */
export function momentsAfter(now: number, { limit, meter }: WalkedMeter): number[] {
  const periodUs = limit.periodMs * 1000
  const parts = [0, 1, periodUs / limit.count, periodUs / 10, periodUs / 2, periodUs - 1, periodUs, meter.maxWaitUs]
  return parts.map(part => now + Math.floor(part))
}

/** Returns the moments at which calls of several costs would pass, seen from several moments. */
export function passesOf(key: OneKey, now: number, subject: WalkedMeter): number[] {
  const costs = [1, Math.ceil(subject.most / 2), subject.most]
  return momentsAfter(now, subject).flatMap(moment => costs.map(cost => moment + key.delay(moment, cost)))
}

export function answersOf(key: OneKey, now: number, subject: WalkedMeter): number[] {
  return [...passesOf(key, now, subject), ...momentsAfter(now, subject).map(moment => key.remaining(moment))]
}
