import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { mergeStats, noCounts, type Stats } from '../stats.ts'
import { FleetHistory } from './fleet-history.ts'
import { FleetReporter } from './fleet-reporter.ts'
import { keyOfStep, mostFields, mostReportedRules, parseStep } from './fleet-steps.ts'
import { historyLevels } from './history-levels.ts'

let server: RedisServer
let isDown = false
let commands: string[] = []

beforeAll(async () => {
  server = await startRedis()
  await server.client.config('SET', 'appendonly', 'no')
}, 30_000)
afterAll(() => server.close())
beforeEach(async () => {
  isDown = false
  commands = []
  await server.client.flushall()
})

async function send([name, ...args]: readonly string[]): Promise<unknown> {
  commands.push(name!)
  if (isDown) throw new Error('down')
  return await server.client.call(name!, ...args)
}

/** A process whose counters a test sets. */
class CountingProcess {
  readonly reporter: FleetReporter
  #rules = new Map<string, { allowed: number; refused: number }>()

  constructor(name: string) {
    this.reporter = new FleetReporter({ send, prefix: 'diana', stats: () => this.#stats(), process: name })
  }

  count(rule: string, allowed: number, refused = 0): this {
    const before = this.#rules.get(rule) ?? { allowed: 0, refused: 0 }
    this.#rules.set(rule, { allowed: before.allowed + allowed, refused: before.refused + refused })
    return this
  }

  #stats(): Stats {
    const rules = [...this.#rules].map(([id, counts]) => ({ id, waiting: 0, ...noCounts, ...counts }))
    const sum = (name: 'allowed' | 'refused') => rules.reduce((total, rule) => total + rule[name], 0)
    return { ...mergeStats([]), total: { ...noCounts, allowed: sum('allowed'), refused: sum('refused') }, rules }
  }
}

/** What all steps of one length have, as Redis has it. */
async function inRedis(stepMs: number): Promise<{ rules: Record<string, number>; processes: Record<string, number> }> {
  const rules: Record<string, number> = {}
  const processes: Record<string, number> = {}
  for (const key of await server.client.keys(`diana:d1:history:${stepMs}:*`)) {
    const step = parseStep(await server.client.call('HGETALL', key))!
    for (const [name, { allowed }] of step.rules) rules[name] = (rules[name] ?? 0) + allowed
    for (const [name, { allowed }] of step.processes) processes[name] = (processes[name] ?? 0) + allowed
  }
  return { rules, processes }
}

async function redisNow(): Promise<number> {
  const [seconds] = (await server.client.call('TIME')) as string[]
  return Number(seconds) * 1000
}

/** Writes a step as processes would have, so many steps before the one that is under way. */
async function writeStep(level: number, ago: number, fields: Record<string, string>): Promise<number> {
  const { stepMs } = historyLevels[level]!
  const at = (Math.floor((await redisNow()) / stepMs) - ago) * stepMs
  await server.client.hset(keyOfStep('diana', stepMs, at), fields)
  return at
}

describe('what processes report to the history of their fleet', () => {
  it('processes add up by rule and are kept apart by name, in steps of every length once they end', async () => {
    const [one, other] = [new CountingProcess('web-1:7'), new CountingProcess('web-2:7')]
    one.count('a', 5, 2).count('b', 1)
    other.count('a', 10)
    await one.reporter.flush()
    other.count('a', 1)
    await other.reporter.close()
    one.count('b', 2)
    await one.reporter.close()
    for (const { stepMs, frames } of historyLevels) {
      expect(await inRedis(stepMs)).toEqual({
        rules: { '': 19, a: 16, b: 3 },
        processes: { 'web-1:7': 8, 'web-2:7': 11 },
      })
      for (const key of await server.client.keys(`diana:d1:history:${stepMs}:*`)) {
        const ttl = await server.client.pttl(key)
        expect([ttl > stepMs * frames, ttl <= stepMs * (frames + 2)]).toEqual([true, true])
      }
    }
  })

  it('counts made while Redis was away are reported later, and nothing is lost or counted twice', async () => {
    const process = new CountingProcess('p')
    process.count('a', 3)
    isDown = true
    await process.reporter.flush()
    process.count('a', 4)
    await process.reporter.flush(true)
    isDown = false
    process.count('a', 1)
    await process.reporter.flush()
    await process.reporter.close()
    for (const { stepMs } of historyLevels) expect((await inRedis(stepMs)).rules).toEqual({ '': 8, a: 8 })
  })

  it('a process reports the busiest rules, and a step that is full takes no new ones', async () => {
    const process = new CountingProcess('p')
    for (let rule = 0; rule < mostReportedRules + 50; rule++) process.count(`rule ${rule}`, rule + 1)
    await process.reporter.flush()
    const { rules } = await inRedis(5000)
    expect(Object.keys(rules)).toHaveLength(mostReportedRules + 1)
    expect([rules['rule 0'], rules[`rule ${mostReportedRules + 49}`]]).toEqual([undefined, mostReportedRules + 50])
    for (const key of await server.client.keys('diana:d1:history:5000:*')) {
      const fields = Array.from({ length: mostFields }, (_, i) => [`rfill ${i}`, '1 0 0 0'])
      await server.client.hset(key, Object.fromEntries(fields))
      process.count('new', 10_000).count('rule 549', 1)
      await process.reporter.flush()
      expect(await server.client.hget(key, 'rnew')).toBe(null)
    }
  })

  it('a value that Diana has not written is replaced, and reports go on', async () => {
    const at = await writeStep(0, 0, { t: 'garbage', ra: '1 2', r: '1 1 1 1', x: '1 1 1 1' })
    const before = await writeStep(0, 1, { t: '-1 0 0 0' })
    const process = new CountingProcess('p')
    process.count('a', 3)
    await process.reporter.flush()
    const totals = await Promise.all([at, before].map(step => server.client.hget(keyOfStep('diana', 5000, step), 't')))
    expect(totals).toContain('3 0 0 0')
  })
})

describe('the history of a fleet', () => {
  it('the history of a fleet shows whole steps, the time before, the rules and the processes', async () => {
    for (let ago = 1; ago <= 130; ago++) {
      const allowed = ago <= 60 ? 10 : 1
      await writeStep(0, ago, { t: `${allowed} 2 0 0`, ra: `${allowed} 2 0 0`, 'pweb-1:7': `${allowed} 2 0 0` })
    }
    const history = new FleetHistory(send, 'diana')
    const { stepMs, series, before, rules, rulesBefore, processes } = await history.read({ lengthMs: 300_000 })
    expect([stepMs, series.allowed.length, before.allowed.length]).toEqual([5000, 60, 60])
    // the newest step may not be whole when it is read
    expect(series.allowed.slice(1, -1).every(count => count === 10)).toBe(true)
    expect(before.allowed.slice(1, -1).every(count => count === 1)).toBe(true)
    expect(rules.get('a')!.allowed).toBeGreaterThanOrEqual(580)
    expect(rulesBefore.get('a')!.allowed).toBeLessThanOrEqual(80)
    expect([...processes.keys()]).toEqual(['web-1:7'])
    const one = await history.read({ lengthMs: 300_000, process: 'web-1:7' })
    expect(one.series.allowed.slice(1, -1)).toEqual(series.allowed.slice(1, -1))
    expect(
      (await history.read({ lengthMs: 300_000, rule: 'none' })).series.allowed.slice(1, -1).every(n => n === 0),
    ).toBe(true)
  })

  it('a step that can change no more is asked for once, whether it is there or not', async () => {
    await writeStep(2, 3, { t: '7 0 0 0' })
    const history = new FleetHistory(send, 'diana')
    await history.read({ lengthMs: 7 * 86_400_000 })
    commands = []
    const { series } = await history.read({ lengthMs: 7 * 86_400_000 })
    expect(commands.filter(name => name === 'HGETALL').length).toBeLessThanOrEqual(2)
    expect(series.allowed.filter(count => count === 7)).toHaveLength(1)
    expect(series.allowed.filter(count => count === null)).toHaveLength(335)
  })

  it('readers at one time ask Redis for a step once', async () => {
    const history = new FleetHistory(send, 'diana')
    await Promise.all(Array.from({ length: 20 }, () => history.read({ lengthMs: 86_400_000 })))
    expect(commands.filter(name => name === 'HGETALL').length).toBeLessThanOrEqual(577)
  })

  it('a fleet whose Redis does not answer has no history, and has one again when it does', async () => {
    const history = new FleetHistory(send, 'diana')
    isDown = true
    await expect(history.read({ lengthMs: 300_000 })).rejects.toThrow('down')
    isDown = false
    await writeStep(0, 3, { t: '7 0 0 0' })
    expect((await history.read({ lengthMs: 300_000 })).series.allowed).toContain(7)
  })

  it.each([
    ['a number', 5],
    ['nothing', null],
    ['a text', 'x'],
    ['an odd list', ['t']],
    ['a list of lists', [[], {}]],
    ['huge numbers', ['t', '99999999999999999999 0 0 0']],
    ['negative numbers', ['t', '-1 0 0 0']],
    ['a long name', [`r${'x'.repeat(600)}`, '1 0 0 0']],
  ])('an answer of Redis that is %s is not a step', (_, reply) => {
    expect(parseStep(reply)).toBeUndefined()
  })
})
