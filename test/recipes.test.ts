import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createLimiter, type Limiter } from 'diana-limiter'
import { afterEach, describe, expect, it } from 'vitest'
import { run } from '../packages/gateway/src/cli/run.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = join(root, 'examples/recipes')
const files = readdirSync(folder).filter(file => !file.endsWith('.cases.yaml'))
const page = readFileSync(join(root, 'docs/recipes.md'), 'utf8')

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
/** Noon, so that no day ends within hours. */
const NOON = Date.parse('2026-05-10T12:00Z')

const limiters: Limiter[] = []
afterEach(async () => {
  for (const limiter of limiters.splice(0)) await limiter.close()
})

interface Caller {
  readonly account?: string
  readonly ip?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The rules of a recipe on a clock of the test, and calls that end with a status. */
async function open(file: string) {
  const time = { ms: NOON }
  const limiter = await createLimiter({ config: join(folder, file), clock: () => time.ms })
  limiters.push(limiter)
  const callOf = (target: string, { account, ip = '203.0.113.9', headers = {} }: Caller) => {
    const [method, path] = target.split(' ') as [string, string]
    return { method, path, ip, headers, ...(account === undefined ? {} : { attributes: { account } }) }
  }
  const send = async (target: string, status: number, caller: Caller = {}) => {
    const verdict = await limiter.check(callOf(target, caller))
    if (verdict.allowed) verdict.end({ status })
    return verdict
  }
  /** How many of so many calls pass. */
  const pass = async (times: number, target: string, status: number, callerOf: (i: number) => Caller = () => ({})) => {
    let passed = 0
    for (let i = 0; i < times; i++) if ((await send(target, status, callerOf(i))).allowed) passed++
    return passed
  }
  const begin = (target: string, caller: Caller = {}) => limiter.check(callOf(target, caller))
  return { time, limiter, send, pass, begin }
}

describe('the recipes', () => {
  it.each(files)('diana check accepts %s', async file => {
    const lines: string[] = []
    const print = (line: string) => void lines.push(line)
    expect(await run(['check', join(folder, file)], { input: [] as never, print, printError: print })).toBe(0)
  })

  it.each(files)('docs/recipes.md shows %s as it is', file => {
    expect(page).toContain(`\`\`\`yaml\n${readFileSync(join(folder, file), 'utf8')}\`\`\``)
    expect(page).toContain(`examples/recipes/${file}`)
  })
})

describe('logins', () => {
  const login = 'POST /login'

  it('ten consecutive failures of one account from one address are followed by blocks that grow', async () => {
    const { pass, send, time } = await open('login.yaml')
    const ann = () => ({ account: 'ann' })
    expect(await pass(9, login, 401, ann)).toBe(9)
    await send(login, 200, ann())
    expect(await pass(11, login, 401, ann)).toBe(10)
    expect(await send(login, 401, { account: 'bob' })).toMatchObject({ allowed: true })
    const blocks: number[] = []
    for (let block = 0; block < 13; block++) {
      const { retryAfterMs } = await send(login, 200, ann())
      blocks.push(retryAfterMs / MINUTE)
      time.ms += retryAfterMs - 1
      expect(await send(login, 200, ann())).toMatchObject({ allowed: false, reason: 'blocked', rule: 'login-pair' })
      time.ms += 1
      // the device is known, so that only the pair is blocked
      const known = { ...ann(), headers: { 'x-known-device': 'yes' } }
      expect(await pass(11, login, 401, () => known)).toBe(10)
    }
    expect(blocks).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440])
  })

  it.each([61 * SECOND, HOUR, 24 * HOUR, 7 * 24 * HOUR])(
    'the right password passes %i ms after ten wrong ones',
    async laterMs => {
      const { pass, send, time } = await open('login.yaml')
      expect(await pass(11, login, 401, () => ({ account: 'ann' }))).toBe(10)
      time.ms += laterMs
      expect((await send(login, 200, { account: 'ann' })).allowed).toBe(true)
    },
  )

  it('an account that is guessed from many addresses is shut for the day, but not for its known devices', async () => {
    const { pass, send, time } = await open('login.yaml')
    const from = (i: number) => ({ account: 'ann', ip: `198.51.100.${i}` })
    expect(await pass(60, login, 401, from)).toBe(50)
    expect((await send(login, 200, { account: 'ann', ip: '192.0.2.1' })).rule).toBe('login-account')
    const known = { account: 'ann', ip: '192.0.2.1', headers: { 'x-known-device': 'yes' } }
    expect((await send(login, 200, known)).allowed).toBe(true)
    time.ms += 12 * HOUR
    expect((await send(login, 200, { account: 'ann', ip: '192.0.2.1' })).allowed).toBe(true)
  })

  it('an address that guesses many accounts is blocked', async () => {
    const { pass, send, time } = await open('login.yaml')
    expect(await pass(120, login, 401, i => ({ account: `account-${i}` }))).toBe(100)
    time.ms += HOUR - 1
    expect(await send(login, 200, { account: 'ann' })).toMatchObject({ allowed: false, rule: 'login-address' })
  })
})

describe('a caller who was refused', () => {
  const phone = { headers: { 'x-phone': '1' } }
  const tenant = { account: 'ann', headers: { 'x-tenant': 't1' } }
  const free = { account: 'ann', headers: { 'x-plan': 'free' } }
  it.each<[string, string, number, number, Caller, number]>([
    ['login.yaml', 'POST /login', 401, 200, { account: 'ann' }, MINUTE],
    ['sign-up.yaml', 'POST /sign-up', 201, 201, {}, HOUR],
    ['sign-up.yaml', 'POST /sign-up', 422, 201, {}, HOUR],
    ['password-reset.yaml', 'POST /password-reset', 202, 202, { account: 'ann' }, MINUTE],
    ['password-reset.yaml', 'POST /password-reset/77/confirm', 400, 200, {}, HOUR],
    ['sms.yaml', 'POST /sms/code', 202, 202, phone, MINUTE],
    ['expensive-search.yaml', 'GET /search', 200, 200, { account: 'ann' }, MINUTE],
    ['api-plans.yaml', 'GET /orders', 200, 200, free, MINUTE],
    ['webhooks.yaml', 'POST /hooks/bank', 401, 200, {}, 10 * MINUTE],
    ['crawlers.yaml', 'GET /a', 200, 200, {}, MINUTE],
    ['crawlers.yaml', 'GET /guess', 404, 200, {}, 5 * MINUTE],
    ['tenants.yaml', 'GET /', 200, 200, tenant, MINUTE],
  ])('a call by %s for %s with %i passes with %i at the moment of Retry-After, and not before', async (...row) => {
    const [file, target, status, right, caller, mostMs] = row
    const { send, time } = await open(file)
    let verdict = await send(target, status, caller)
    for (let i = 0; verdict.allowed && i < 1000; i++) verdict = await send(target, status, caller)
    const { allowed, retryAfterMs } = verdict
    expect(allowed).toBe(false)
    expect(retryAfterMs).toBeGreaterThan(0)
    expect(retryAfterMs).toBeLessThanOrEqual(mostMs)
    time.ms += Math.ceil(retryAfterMs) - 1
    expect((await send(target, right, caller)).allowed).toBe(false)
    time.ms += 1
    expect((await send(target, right, caller)).allowed).toBe(true)
  })
})

describe('sign-ups, password resets and text messages', () => {
  it('three accounts an hour and ten a day come from one address, and mistakes count for less', async () => {
    const { pass, time } = await open('sign-up.yaml')
    expect(await pass(10, 'POST /sign-up', 422)).toBe(10)
    expect(await pass(10, 'POST /sign-up', 201)).toBe(3)
    let day = 3
    for (let hour = 1; hour < 8; hour++) {
      time.ms = NOON + hour * HOUR
      day += await pass(5, 'POST /sign-up', 201)
    }
    expect(day).toBe(10)
  })

  it('a password reset is sent once a minute and five times a day, and its code is guessed five times', async () => {
    const { pass, time } = await open('password-reset.yaml')
    const ann = () => ({ account: 'ann' })
    let sent = 0
    for (let minute = 0; minute < 10; minute++) {
      time.ms = NOON + minute * MINUTE
      sent += await pass(2, 'POST /password-reset', 202, ann)
    }
    expect(sent).toBe(5)
    expect(await pass(8, 'POST /password-reset/77/confirm', 400)).toBe(5)
    time.ms += 59 * MINUTE
    expect(await pass(1, 'POST /password-reset/77/confirm', 200)).toBe(0)
  })

  it('a phone gets a code once a minute, and all phones together ten thousand a month', async () => {
    const { pass, send, time } = await open('sms.yaml')
    const phone = (number: number, ip: string) => ({ ip, headers: { 'x-phone': String(number) } })
    expect(await pass(3, 'POST /sms/code', 202, () => phone(1, '192.0.2.1'))).toBe(1)
    time.ms += MINUTE
    expect(await pass(3, 'POST /sms/code', 202, () => phone(1, '192.0.2.2'))).toBe(1)
    const many = (i: number) => phone(100 + i, `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`)
    expect(await pass(10_010, 'POST /sms/code', 202, many)).toBe(9998)
    const refused = await send('POST /sms/code', 202, phone(2, '192.0.2.3'))
    expect(refused).toMatchObject({ rule: 'sms-budget', retryAfterMs: Date.parse('2026-06-01T00:00Z') - time.ms })
    time.ms = Date.parse('2026-06-01T00:00Z')
    expect((await send('POST /sms/code', 202, phone(2, '192.0.2.3'))).allowed).toBe(true)
  })
})

describe('services that are expensive, sold or shared', () => {
  it('a caller searches twice at a time and pays what a search costs', async () => {
    const { pass, begin } = await open('expensive-search.yaml')
    const held = [await begin('GET /search', { account: 'ann' }), await begin('GET /search', { account: 'ann' })]
    expect(await begin('GET /search', { account: 'ann' })).toMatchObject({ allowed: false, rule: 'search-one-caller' })
    for (const verdict of held) verdict.end({ status: 200 })
    const costly = () => ({ account: 'bob', headers: { 'x-search-cost': '10' } })
    expect(await pass(5, 'GET /search', 200, costly)).toBe(2)
  })

  it('plans have limits of their own, and months end when the calendar says so', async () => {
    const { pass, send, time } = await open('api-plans.yaml')
    const on = (plan: string) => () => ({ account: 'ann', headers: { 'x-plan': plan } })
    expect(await pass(10, 'GET /orders', 200, on('free'))).toBe(5)
    expect(await pass(1, 'GET /orders', 200, on('suspended'))).toBe(0)
    expect(await pass(60, 'GET /orders', 200, on('pro'))).toBe(50)
    for (let second = 1; second < 200; second++) {
      time.ms = NOON + second * SECOND
      await pass(5, 'GET /orders', 200, on('free'))
    }
    time.ms += SECOND
    const refused = await send('GET /orders', 200, on('free')())
    expect(refused).toMatchObject({ rule: 'free', retryAfterMs: Date.parse('2026-06-01T00:00Z') - time.ms })
  })

  it('a sender of webhooks is slowed down, and one without a valid signature is blocked', async () => {
    const { pass, send, time } = await open('webhooks.yaml')
    expect(await pass(30, 'POST /hooks/bank', 401)).toBe(20)
    time.ms += 9 * MINUTE
    expect((await send('POST /hooks/bank', 200)).reason).toBe('blocked')
    expect((await send('POST /hooks/bank', 200, { ip: '192.0.2.7' })).allowed).toBe(true)
  })

  it('a crawler is slowed down, and one that guesses pages is blocked ever longer', async () => {
    const { pass, send, time } = await open('crawlers.yaml')
    expect(await pass(200, 'GET /a', 200)).toBe(120)
    expect(await pass(200, 'GET /a', 200, () => ({ ip: '198.51.100.7' }))).toBe(200)
    const guess = () => send('GET /guess', 404, { ip: '192.0.2.8' })
    const blocks: number[] = []
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 30; i++) await guess()
      const { retryAfterMs } = await guess()
      blocks.push(retryAfterMs / MINUTE)
      time.ms += retryAfterMs
    }
    expect(blocks).toEqual([5, 20, 80])
  })

  it('a tenant cannot take the places of the others', async () => {
    const { begin, pass } = await open('tenants.yaml')
    const of = (tenant: string, account = 'ann') => ({ account, headers: { 'x-tenant': tenant } })
    let held = 0
    for (let i = 0; i < 30; i++) if ((await begin('GET /', of('loud', `user-${i}`))).allowed) held++
    expect(held).toBe(20)
    expect(await pass(50, 'GET /', 200, () => of('quiet'))).toBe(50)
    expect(await pass(10, 'GET /', 200, () => of('quiet'))).toBe(0)
    expect(await pass(10, 'GET /', 200, () => of('quiet', 'bob'))).toBe(10)
  })
})
