import { createServer } from 'node:http'
import { listen } from '@test/filters/listen'
import express from 'express'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createLimiter, type LimiterOptions } from '../create/create-limiter.ts'
import type { Limiter } from '../limiter.ts'

const closing: (() => unknown)[] = []
let warnings: string[]
let messages: string[]
let filters: typeof import('./express.ts')

beforeEach(async () => {
  warnings = []
  messages = []
  vi.spyOn(process, 'emitWarning').mockImplementation((message, options) => {
    warnings.push((options as { code: string }).code)
    messages.push(String(message))
  })
  // warnings are told once in the life of a process: each test begins a new one
  vi.resetModules()
  filters = await import('./express.ts')
})

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.restoreAllMocks()
})

async function limit(options: Partial<LimiterOptions>): Promise<Limiter> {
  const limiter = await createLimiter({ rules: [{ id: 'each', by: 'ip', limit: '5/h' }], ...options })
  closing.push(() => limiter.close())
  return limiter
}

/** Calls twice, and tells what was left of the limit. */
async function call(app: express.Express, headers: Record<string, string> = {}): Promise<(string | undefined)[]> {
  const { port, close } = await listen(createServer(app))
  closing.push(close)
  const left: (string | undefined)[] = []
  for (let time = 0; time < 2; time++) {
    const { headers: told } = await fetch(`http://127.0.0.1:${port}/`, { headers })
    left.push(/r=(\d+)/.exec(told.get('ratelimit') ?? '')?.[1])
  }
  return left
}

const answer: express.RequestHandler = (_request, response) => void response.send('served')

test('a filter that is mounted correctly causes no warning', async () => {
  expect(
    await call(
      express()
        .use(filters.diana(await limit({})))
        .use(answer),
    ),
  ).toEqual(['4', '3'])
  expect(warnings).toEqual([])
})

test.each([{ 'x-forwarded-for': '203.0.113.9' }, { forwarded: 'for=203.0.113.9' }])(
  'an untrusted proxy causes one warning: %j',
  async headers => {
    await call(
      express()
        .use(filters.diana(await limit({})))
        .use(answer),
      headers as Record<string, string>,
    )
    expect(warnings).toEqual(['DIANA_PROXY_NOT_TRUSTED'])
    expect(messages[0]).toContain('Express: trust proxy; Fastify: trustProxy')
  },
)

test('a trusted proxy causes no warning', async () => {
  const trusting = await limit({ trustProxy: ['127.0.0.0/8', '2001:db8::/32'] })
  await call(express().use(filters.diana(trusting)).use(answer), { 'x-forwarded-for': '203.0.113.9' })
  expect(warnings).toEqual([])
})

test.each([['0.0.0.0/0'], ['::/0'], ['127.0.0.1', '128.0.0.0/1'], ['2000::/3']])(
  'trusting every address causes one warning: %s',
  async (...trustProxy) => {
    await call(
      express()
        .use(filters.diana(await limit({ trustProxy })))
        .use(answer),
    )
    expect(warnings).toEqual(['DIANA_TRUSTS_EVERYONE'])
  },
)

test('a filter that is mounted twice counts once and causes one warning', async () => {
  const limiter = await limit({})
  const app = express().use(filters.diana(limiter)).use(filters.diana(limiter)).use(answer)
  expect(await call(app)).toEqual(['4', '3'])
  expect(warnings).toEqual(['DIANA_MOUNTED_TWICE'])
})

test('a route filter that is mounted twice counts once, and one with other rules causes no warning', async () => {
  const limiter = await limit({ rules: ['a', 'b'].map(id => ({ id, match: 'none' as const, limit: '5/h' })) })
  const [a, again, b] = ['a', 'a', 'b'].map(rule => filters.rateLimit(limiter, { rule }))
  expect(await call(express().use(filters.diana(limiter), a!, b!, answer))).toEqual(['4', '3'])
  expect(warnings).toEqual([])
  await call(express().use(a!, again!, answer))
  expect(warnings).toEqual(['DIANA_MOUNTED_TWICE'])
})

test('two limiters may both decide a call without a warning', async () => {
  const app = express().use(filters.diana(await limit({})), filters.diana(await limit({})), answer)
  expect(await call(app)).toEqual(['4', '3'])
  expect(warnings).toEqual([])
})

test('a filter that is mounted after the handler causes one warning and no failure', async () => {
  const early: express.RequestHandler = (_request, response, next) => {
    response.send('served')
    next()
  }
  const app = express()
    .use(early)
    .use(filters.diana(await limit({})))
  expect(await call(app)).toEqual([undefined, undefined])
  expect(warnings).toEqual(['DIANA_MOUNTED_LATE'])
})

test('an unknown rule causes one warning per name when the filter is mounted', async () => {
  const limiter = await limit({})
  for (const rule of ['nobody', 'nobody', 'noone']) filters.rateLimit(limiter, { rule })
  expect(warnings).toEqual(['DIANA_NO_SUCH_RULE', 'DIANA_NO_SUCH_RULE'])
})

test('a failure causes one warning if no error handler is set', async () => {
  const limiter = await limit({})
  const app = express().use(filters.diana(limiter)).use(answer)
  await limiter.close()
  expect(await call(app)).toEqual([undefined, undefined])
  expect(warnings).toEqual(['DIANA_FAILED'])
})

test('rateLimit({ limit }) in a handler is reported once; filters that were closed do not count', async () => {
  const create = () => filters.rateLimit({ limit: '5/h' })
  for (let time = 0; time < 60; time++) await create().close()
  expect(warnings).toEqual([])
  const open = Array.from({ length: 60 }, create)
  expect(warnings).toEqual(['DIANA_MADE_OFTEN'])
  await Promise.all(open.map(one => one.close()))
})

test('rateLimit({ limit }) that is called for each request is reported with the second request', async () => {
  const app = express().use((request, response, next) => {
    const own = filters.rateLimit({ limit: '1/h' })
    closing.push(own.close)
    own(request, response, next)
  })
  expect(await call(app.use(answer))).toEqual(['0', '0'])
  expect(warnings).toEqual(['DIANA_MADE_OFTEN'])
})

test('one line that mounts rateLimit({ limit }) on several routes causes no warning', async () => {
  const app = express()
  for (const path of ['/a', '/b', '/']) {
    const own = filters.rateLimit({ limit: '5/h' })
    closing.push(own.close)
    app.get(path, own, answer)
  }
  expect(await call(app)).toEqual(['4', '3'])
  expect(warnings).toEqual([])
})

const fails = (): never => {
  throw new Error('broken')
}

test('each function that fails causes a warning that says what became of the call', async () => {
  const refused = 'onRefused failed, so the call was refused with the answer of Diana'
  const cases: [options: object, expected: string | undefined][] = [
    [{ skip: fails }, 'skip failed, so the call was decided: Error: broken'],
    [{ attributes: fails }, 'attributes failed, so the call was decided without them: Error: broken'],
    [{ cost: fails }, 'cost failed, so the call counted as 1: Error: broken'],
    [{ onRefused: fails }, `${refused}: Error: broken`],
    // reported at most once a minute
    [{ onRefused: async () => fails() }, undefined],
    [{ onRefused: () => ({ status: 99 }) }, undefined],
  ]
  for (const [options, expected] of cases) {
    const limiter = await limit({ rules: [{ id: 'each', by: 'ip', limit: '1/h' }] })
    const app = express().use(filters.diana(limiter, options as never))
    expect(await call(app.use(answer))).toEqual(['0', '0'])
    const texts = messages.splice(0)
    expect(texts).toEqual(expected === undefined ? [] : [`something failed while a call was decided: ${expected}`])
  }
})

test('an onError that fails too is reported, with what became of the call', async () => {
  const app = express().use(filters.diana(await limit({}), { skip: fails, onError: fails }))
  expect(await call(app.use(answer))).toEqual(['4', '3'])
  const expected = 'skip failed, so the call was decided: Error: broken; and onError failed: Error: broken'
  expect(messages).toEqual([`something failed while a call was decided: ${expected}`])
})

test('a function that returns a promise is reported again each minute until it is mended', async () => {
  const { warnWhile } = await import('../common/warn-once.ts')
  for (const second of [0, 1, 59, 60, 61, 120, 300]) warnWhile('DIANA_ASYNC_FUNCTION', 'by', 'by', second * 1000)
  expect(messages.map(text => text.replace(/^.*: by/, 'by'))).toEqual([
    'by',
    'by (2 more since then)',
    'by (1 more since then)',
    'by',
  ])
})

test('a by that rejects is counted and reported, whatever missing says', async () => {
  for (const missing of [undefined, 'skip', 'shared', 'address'] as const) {
    const own = filters.rateLimit({
      id: `m-${missing}`,
      limit: '1/h',
      by: () => Promise.reject(new Error('no database')),
      missing,
    })
    closing.push(own.close)
    expect(await call(express().use(own).use(answer))).toEqual(['0', '0'])
    if (missing === undefined) expect(warnings.splice(0)).toEqual(['DIANA_FAILED'])
  }
})
