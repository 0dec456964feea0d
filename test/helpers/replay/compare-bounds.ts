import { createReplayLimiter, mergeExtensions } from 'diana-limiter/gateway'
import { parseText } from 'diana-limiter/schema'
import { refusedBy } from '../../../packages/gateway/src/replay/figures/figures.ts'
import { BoundedJudge, uncertaintyOf } from '../../../packages/gateway/src/replay/judging/bounded-judge.ts'
import { ExactJudge } from '../../../packages/gateway/src/replay/judging/exact-judge.ts'
import type { Judge } from '../../../packages/gateway/src/replay/judging/judge.ts'
import { VirtualTime } from '../../../packages/gateway/src/replay/judging/virtual-time.ts'
import { seededRandom } from '../seeded-random.mjs'
import { type RandomCall, randomCalls, randomRules } from './random-log.ts'

const vocabulary = { ...mergeExtensions({}, []), sections: [] }

export interface Comparison {
  readonly rules: object
  readonly name: string
  readonly calls: number
  readonly truth: number
  readonly least: number
  readonly most: number
}

/** Judges random calls by random rules with their exact moments, and again with moments cut to ticks. */
export async function compareBounds(seed: number, tickUs = 1_000_000, size = 800): Promise<Comparison[]> {
  const random = seededRandom(seed)
  const rules = randomRules(random)
  const calls = randomCalls(random, size)
  const { document, mistakes } = parseText(JSON.stringify(rules), 'random', vocabulary)
  if (document === undefined) {
    // some combinations of words are not allowed
    if (mistakes.length === 0) throw new Error('no rules and no mistake')
    return []
  }
  const time = new VirtualTime()
  const first = await createReplayLimiter(document, { clock: () => time.now / 1000, timers: time })
  const exact = new ExactJudge(first, time, { maxKeys: 1e6 })
  for (const logged of calls) await exact.add(logged.call, logged)
  await exact.finish()
  await first.limiter.close()
  const second = await createReplayLimiter(document, { clock: () => 0 })
  const bounded = new BoundedJudge(second, uncertaintyOf(second.rules, tickUs, true), { maxKeys: 1e6 })
  // rules on calls under way need durations, others can do without
  const hides = seed % 2 === 1 && !second.rules.some(({ meters }) => meters.some(meter => meter.held !== undefined))
  for (const logged of shuffled(calls, tickUs, random)) {
    bounded.add(logged.call, hides ? { ...logged, durationUs: Number.NaN } : logged)
  }
  bounded.finish()
  await second.limiter.close()
  return compared(rules, exact, bounded)
}

function compared(rules: object, exact: Judge, bounded: Judge): Comparison[] {
  const { total } = exact
  const all = {
    name: 'all',
    calls: total.calls,
    truth: total.least,
    least: bounded.total.least,
    most: bounded.total.most,
  }
  const each = exact.rules.map((figures, index) => {
    const truth = refusedBy(figures).least
    const { least, most } = refusedBy(bounded.rules[index]!)
    return { rules, name: figures.rule.id, calls: figures.calls, truth, least, most }
  })
  return [{ rules, ...all }, ...each]
}

/** Cut to ticks, in any order within a tick. */
function shuffled(calls: readonly RandomCall[], tickUs: number, random: () => number): RandomCall[] {
  const keyed = calls.map(logged => ({
    logged: { ...logged, at: Math.floor(logged.at / tickUs) * tickUs },
    key: random(),
  }))
  keyed.sort((a, b) => a.logged.at - b.logged.at || a.key - b.key)
  return keyed.map(({ logged }) => logged)
}
