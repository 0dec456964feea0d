import { type CompiledRule, createReplayLimiter, mergeExtensions } from 'diana-limiter/gateway'
import { parseText } from 'diana-limiter/schema'
import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../../../../test/helpers/seeded-random.mjs'
import { type Curve, curveOf, mostOf } from './curve.ts'
import { classesOf } from './sample-calls.ts'
import { findSchedule } from './schedule.ts'

const SETS = Number(process.env.DIANA_BOUND_SETS ?? 12)
const SCHEDULES = Number(process.env.DIANA_BOUND_SCHEDULES ?? 50)
const NOW_US = Date.UTC(2026, 0, 5, 12) * 1000

type Meter = CompiledRule['meters'][number]

const pick = <T>(random: () => number, list: readonly T[]): T => list[Math.floor(random() * list.length)]!
const periods = ['100ms', '1s', '3s', '7s', '10s', '1m', '90s', '1h', '1d']

function ruleText(random: () => number, id: string): string {
  const count = 1 + Math.floor(random() ** 3 * 400)
  const limit = `${count}/${pick(random, periods)}`
  const burst = 1 + Math.floor(random() * 50)
  return pick(random, [
    `{ id: ${id}, limit: ${limit} }`,
    `{ id: ${id}, limit: ${limit}, algorithm: sliding-log }`,
    `{ id: ${id}, limit: ${limit}, algorithm: fixed-window }`,
    `{ id: ${id}, limit: ${limit}, algorithm: fixed-window, align: first-call }`,
    `{ id: ${id}, limit: ${limit}, algorithm: token-bucket }`,
    `{ id: ${id}, limit: ${limit}, algorithm: token-bucket, burst: ${burst} }`,
    `{ id: ${id}, limit: ${limit}, algorithm: token-bucket, burst: ${burst}, refill: interval }`,
    `{ id: ${id}, limit: ${limit}, algorithm: token-bucket, burst: ${burst}, refill: aligned }`,
    `{ id: ${id}, limit: ${limit}, algorithm: leaky-bucket, burst: ${burst} }`,
    `{ id: ${id}, limit: ${count}/s, algorithm: warm-up, warmUp: ${burst}s }`,
    `{ id: ${id}, limit: ${count}/day, algorithm: fixed-window }`,
  ])
}

async function compile(text: string): Promise<readonly CompiledRule[]> {
  const { document, mistakes } = parseText(text, 'random', { ...mergeExtensions({}, []), sections: [] })
  expect(mistakes).toEqual([])
  const replay = await createReplayLimiter(document!, { clock: () => NOW_US / 1000 })
  await replay.limiter.close()
  return replay.rules
}

/** One call after another: some meters price a larger call otherwise. */
function takeAll(meter: Meter, state: Float64Array, now: number, calls: number): void {
  if (!meter.rate?.envelope?.onlyForCost1) meter.take(state, 0, now, calls, 0)
  else for (let i = 0; i < calls; i++) meter.take(state, 0, now, 1, 0)
}

/** The most calls of random schedules in any interval of each length. */
function search(
  meters: readonly Meter[],
  lengths: readonly number[],
  random: () => number,
  schedules: number,
): number[] {
  const most = lengths.map(() => 0)
  const moments: number[] = []
  const amounts: number[] = []
  for (let schedule = 0; schedule < schedules; schedule++) {
    const states = meters.map(meter => new Float64Array(meter.slots))
    let now = NOW_US + Math.floor(random() * 200e6)
    moments.length = 0
    amounts.length = 0
    for (let step = 0; step < 24; step++) {
      let room = Number.POSITIVE_INFINITY
      meters.forEach((meter, index) => {
        room = Math.min(room, meter.remaining(states[index]!, 0, now))
      })
      const calls = random() < 0.6 ? room : Math.min(room, 1 + Math.floor(random() * room))
      if (calls > 0) {
        for (const [index, meter] of meters.entries()) takeAll(meter, states[index]!, now, calls)
        moments.push(now)
        amounts.push(calls)
      }
      const die = random()
      const wanted = 1 + Math.floor(random() ** 2 * 20)
      let delay = 1
      meters.forEach((meter, index) => {
        const wait = meter.delay(states[index]!, 0, now, wanted)
        if (Number.isFinite(wait)) delay = Math.max(delay, wait)
      })
      if (die < 0.55) now += delay
      else if (die < 0.7) now = Math.max(now + 1, Math.ceil((now + 1) / 1e6) * 1e6 - (random() < 0.5 ? 1 : 0))
      else if (die < 0.8) now = (Math.floor(now / 60e6) + 1) * 60e6 - (random() < 0.5 ? 1 : 0)
      else now += 1 + Math.floor(random() * lengths[Math.floor(random() * lengths.length)]!)
    }
    for (const [index, length] of lengths.entries()) {
      let inside = 0
      let first = 0
      for (let last = 0; last < moments.length; last++) {
        inside += amounts[last]!
        while (moments[first]! <= moments[last]! - length) inside -= amounts[first++]!
        if (inside > most[index]!) most[index] = inside
      }
    }
  }
  return most
}

const lengths = [1e6, 60e6, 3600e6, 86_400e6]

describe('bounds of random rules', () => {
  it(`${SCHEDULES} random schedules for each of ${SETS} rule sets never exceed the bound`, async () => {
    const random = seededRandom(44)
    for (let set = 0; set < SETS; set++) {
      const size = 1 + Math.floor(random() * 3)
      const text = `rules:\n${Array.from({ length: size }, (_, index) => `  - ${ruleText(random, `r${index}`)}`).join('\n')}\n`
      const meters = (await compile(text)).flatMap(rule => rule.meters)
      const curves = meters.map(meter => curveOf(meter, 1, NOW_US)!)
      const found = search(meters, lengths, random, SCHEDULES)
      lengths.forEach((length, index) => {
        expect(mostOf(curves, length), `${text} in ${length} us`).toBeGreaterThanOrEqual(found[index]!)
      })
    }
  })

  it(`a schedule reaches the bound of each of ${SETS} random limits within one call`, async () => {
    const random = seededRandom(45)
    const far: string[] = []
    for (let set = 0; set < SETS; set++) {
      const text = `rules:\n  - ${ruleText(random, 'r')}\n`
      const meters = (await compile(text)).flatMap(rule => rule.meters)
      const curves: Curve[] = meters.map(meter => curveOf(meter, 1, NOW_US)!)
      for (const length of lengths) {
        const most = mostOf(curves, length)
        const found = findSchedule(meters, length, 1, NOW_US)
        // moments are whole microseconds: a limiter that warms up loses a part of one with each call
        const off = text.includes('warm-up') ? Math.max(1, most ** 2 / length) : 1
        if (found !== undefined && Math.abs(most - found.reached) > off)
          far.push(`${text.trim()} ${length / 1e6}s: ${found.reached} of ${most}`)
      }
    }
    expect(far).toEqual([])
  })

  it('a schedule reaches seven tenths of the bound of several random limits that need no warm-up', async () => {
    const random = seededRandom(47)
    const far: string[] = []
    for (let set = 0; set < SETS; set++) {
      const rules = Array.from({ length: 2 + Math.floor(random() * 2) }, (_, index) => ruleText(random, `r${index}`))
      if (rules.some(rule => rule.includes('warm-up'))) continue
      const text = `rules:\n${rules.map(rule => `  - ${rule}\n`).join('')}`
      const meters = (await compile(text)).flatMap(rule => rule.meters)
      const curves = meters.map(meter => curveOf(meter, 1, NOW_US)!)
      for (const length of lengths) {
        const most = mostOf(curves, length)
        const found = findSchedule(meters, length, 1, NOW_US)
        if (found !== undefined && (found.reached > most || found.reached < Math.min(most - 1, most * 0.7)))
          far.push(`${text.trim()} ${length / 1e6}s: ${found.reached} of ${most}`)
      }
    }
    expect(far).toEqual([])
  })
})

/** Conditions of random rules, and all calls that differ for them. */
const patterns = ['/', '/x', '/x/**', '/a', '/a/*', '/a/x', '/a/**', '/**', '/*/b', '/a/:id/c', '/a/*.png', '/a/x*']
const paths = [
  '/',
  '/x',
  '/x/y',
  '/a',
  '/a/x',
  '/a/xy',
  '/a/q',
  '/a/q.png',
  '/a/x.png',
  '/a/q/c',
  '/a/x/c',
  '/q/b',
  '/a/b',
  '/q/q/q',
]
const methodLists = ['GET', 'HEAD', '[GET, POST]', 'POST', '[POST, PUT, PATCH, DELETE, OPTIONS, PROPFIND]']
const hosts = ["'*.e.example'", 'x.e.example', '[x.e.example, f.example]']
const headerLists = ["'1'", "['1', x]", "'!1'"]
const attributeLists = ["'1'", "'!1'", "'x*'", "['x', 'y']"]

function matchText(random: () => number): string {
  const parts = [
    random() < 0.6 && `path: ${pick(random, patterns)}`,
    random() < 0.3 && `method: ${pick(random, methodLists)}`,
    random() < 0.2 && `host: ${pick(random, hosts)}`,
    random() < 0.2 && `header: { x-k: ${pick(random, headerLists)} }`,
    random() < 0.2 && `attribute: { plan: ${pick(random, attributeLists)} }`,
    random() < 0.1 && 'websocket: messages',
  ]
  return parts.filter(Boolean).join(', ')
}

function* everyCall() {
  for (const path of paths)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'MKCOL'])
      for (const host of [undefined, 'x.e.example', 'q.e.example', 'f.example'])
        for (const header of [undefined, '1', 'x', '!1', 'q'])
          for (const plan of [undefined, '1', 'x', 'xq', 'y', 'q'])
            yield {
              ...{ method, path, host, ip: '203.0.113.9', caseInsensitive: true },
              headers: header === undefined ? {} : { 'x-k': header },
              attributes: plan === undefined ? {} : { plan },
            }
}

it('every call of random rules meets at least the rules of a class that the bound knows, also of those with one of its rules', async () => {
  const random = seededRandom(46)
  for (let set = 0; set < SETS; set++) {
    const rules = Array.from(
      { length: 1 + Math.floor(random() * 5) },
      (_, index) => `  - { id: r${index}, limit: 9/s, match: { ${matchText(random)} } }`,
    )
    const text = `rules:\n${rules.join('\n')}\n`
    const { document, mistakes } = parseText(text, 'random', { ...mergeExtensions({}, []), sections: [] })
    expect(mistakes).toEqual([])
    const replay = await createReplayLimiter(document!, { clock: () => NOW_US / 1000 })
    const buffer: CompiledRule[] = []
    for (const isMessage of [false, true]) {
      const known = classesOf(document!, replay, isMessage).map(({ rules }) => rules.map(({ id }) => id))
      const hasRules = document!.rules.some(({ match }) => (match.websocket !== undefined) === isMessage)
      const seen = new Set<string>()
      for (const call of everyCall()) {
        const size = replay.select(call as never, buffer, isMessage)
        const met = buffer.slice(0, size).map(({ id }) => id)
        if (seen.has(met.join())) continue
        seen.add(met.join())
        const below = known.filter(one => one.every(id => met.includes(id)))
        if (!isMessage || hasRules) expect(below.length, `${text} ${JSON.stringify(call)}`).toBeGreaterThan(0)
        for (const id of met)
          expect(
            below.some(one => one.includes(id)),
            `${id} of ${text} ${JSON.stringify(call)}`,
          ).toBe(true)
      }
    }
    await replay.limiter.close()
  }
})
