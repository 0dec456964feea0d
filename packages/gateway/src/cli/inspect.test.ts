import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RedisServer, startRedis } from '@test/servers/redis-server'
import { createLimiter, type Limiter } from 'diana-limiter'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from './run.ts'

let redis: RedisServer
let folder: string
let file: string
let limiter: Limiter
beforeAll(async () => {
  redis = await startRedis()
  folder = await mkdtemp(join(tmpdir(), 'diana-inspect-'))
  file = join(folder, 'diana.yaml')
  await writeFile(
    file,
    `store: { redis: "redis://${redis.authority}", timeout: 5s }
identify: { account: attribute:account }
rules:
  - { id: login, by: account, limit: 10/h, algorithm: fixed-window, lease: off }
  - { id: plans, by: account, lease: off, algorithm: sliding-log, limit: { by: attribute:plan, values: { pro: 20/m }, default: 5/h } }
  - { id: tokens, by: account, lease: off, limit: 1000/h, cost: { overrun: debt, hold: 10m } }
  - { id: downloads, by: account, algorithm: concurrency, limit: 3 }
`,
  )
  limiter = await createLimiter({ config: file })
  const call = (account: string) => ({ method: 'GET', path: '/', attributes: { account, plan: 'pro' } })
  for (const account of ['ann', 'ann', 'bob']) await limiter.check(call(account), { cost: 1 })
})
afterAll(async () => {
  await limiter.close()
  await redis.close()
  await rm(folder, { recursive: true })
})

async function inspect(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', '']
  const terminal = {
    input: (async function* () {})(),
    isScreen: false,
    print: (line: string) => {
      out += `${line}\n`
    },
    printError: (line: string) => {
      err += `${line}\n`
    },
  }
  const code = await run(['inspect', ...words], terminal)
  return { code, out, err }
}

describe('diana inspect', () => {
  it('the report has the rule, the caller, the numbers of the limit in words, and when the key expires', async () => {
    const { code, out } = await inspect('diana:login:account{ann}', '--rules', file)
    expect(code).toBe(0)
    expect(out).toMatch(
      /^diana:login:account\{ann\}\n {2}rule "login", caller ann\n {2}limit 10\/1h: 2 used, 8 left; all back 20\S+Z\n {2}forgotten in \S+\n$/,
    )
  })

  it('the report has all limits of a caller, reservations and slots', async () => {
    const plans = await inspect('diana:plans:account{ann}', '--rules', file)
    expect(plans.out).toContain('limit 20/1m: 2 used, 18 left')
    expect(plans.out).toMatch(/limit 5\/1h: 2 used, 3 left; .*not the one used last; kept 20/)
    const tokens = await inspect('diana:tokens:account{bob}', '--rules', file)
    expect(tokens.out).toMatch(/reserved: 1, released 20\S+Z unless it is settled/)
    const downloads = await inspect('diana:downloads:account:held{ann}', '--rules', file)
    expect(downloads.out).toContain('limit 3: 2 used, 1 left')
  })

  it('a pattern lists its callers, at most as many as asked for, as JSON too', async () => {
    const { out } = await inspect('diana:*:account{*}*', '--rules', file, '--json')
    const keys = (JSON.parse(out) as { key: string }[]).map(({ key }) => key)
    expect(keys.filter(key => key.startsWith('diana:login:')).sort()).toEqual([
      'diana:login:account{ann}',
      'diana:login:account{bob}',
    ])
    const one = await inspect('diana:login:*', '--rules', file, '--json', '--most', '1')
    expect(JSON.parse(one.out)).toHaveLength(1)
  })

  it('the report has the numbers alone if there are no rules at hand', async () => {
    const { out } = await inspect('diana:login:account{ann}', '--redis', `redis://${redis.authority}`)
    expect(out).toMatch(
      /no rule in force counts under this key\n {2}limit a limit that these rules do not have: numbers \d+ 2\n/,
    )
  })

  it.each([
    [['diana:x'], 2, 'give either --rules FILE or --redis URL'],
    [[], 2, 'one key or pattern is needed'],
    [['diana:x', '--redis', 'redis://127.0.0.1:1', '--most', '0'], 2, '--most must be a whole number'],
    [['diana:login:account{zoe}', '--rules', 'FILE'], 1, 'nothing is counted under diana:login:account{zoe}'],
  ])('a mistake is explained: %j', async (words, code, message) => {
    const result = await inspect(...words.map(word => (word === 'FILE' ? file : word)))
    expect([result.code, result.err]).toEqual([code, expect.stringContaining(message)])
  })
})
