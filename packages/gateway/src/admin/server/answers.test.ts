import { Ajv2020 } from 'ajv/dist/2020.js'
import { createLimiter } from 'diana-limiter'
import { describe, expect, it } from 'vitest'
import { Live, type News } from '../live.ts'
import { operations } from '../operations/index.ts'
import { watchLimiter } from '../processes.ts'
import { createAdmin } from './create-admin.ts'
import { openApiOf } from './openapi.ts'

interface Described {
  readonly paths: Record<
    string,
    Record<string, { responses: { 200: { content: Record<string, { schema: object }> } } }>
  >
  readonly components: { readonly schemas: Record<string, object> }
}

const { paths, components } = openApiOf(operations, '1.0.0') as unknown as Described
const ajv = new Ajv2020({ strict: false })
const answerOf = (path: string) => paths[`/api/v1${path}`]!.get!.responses[200].content['application/json']!.schema

function mistakesOf(schema: object, value: unknown): unknown {
  const validate = ajv.compile(schema)
  // as it is sent
  validate(JSON.parse(JSON.stringify(value)))
  return validate.errors
}

const rules = [
  { id: 'backend', algorithm: 'adaptive', limit: 50, count: 'local' },
  { id: 'tokens', limit: '1000/m', cost: { reserve: { from: 10 } } },
  { id: 'each', by: 'ip', limit: '2/m' },
] as const
const call = { method: 'GET', path: '/', ip: '203.0.113.9' }

describe('the answers of a limiter with every kind of statistics, whose Redis is down', () => {
  it('status, figures, rules and live figures match their schemas', async () => {
    const overload = { callWait: '1h', eventLoopDelay: '1h', eventLoopUtilization: 1 }
    const limiter = await createLimiter({ rules, overload, store: { redis: 'redis://127.0.0.1:1' } })
    limiter.events.on('store', () => {})
    for (let i = 0; i < 4; i++) (await limiter.check(call)).end?.({ status: 200 })
    const news: News[] = []
    const live = new Live(watchLimiter(limiter), limiter, () => ({}))
    live.follow(one => news.push(one))
    const app = await createAdmin({ limiter, host: '127.0.0.1', page: '/no-page' })
    const get = async (path: string) =>
      (await app.inject({ url: `/api/v1${path}`, headers: { host: '127.0.0.1:8081' } })).json()
    const figures = () => news.findLast(({ event }) => event === 'figures')?.data as Record<string, unknown> | undefined
    await expect.poll(figures).toMatchObject({
      ...{ store: expect.anything(), overload: expect.anything(), costs: { tokens: expect.anything() } },
      adaptive: { backend: expect.anything() },
    })
    expect(mistakesOf(components.schemas.LiveFigures!, figures())).toBeNull()
    const status = await get('/status')
    expect(status.store).toMatchObject({ healthy: false, outages: [{ kind: 'down' }] })
    expect(mistakesOf(answerOf('/status'), status)).toBeNull()
    for (const path of ['/figures', '/rules', '/processes', '/callers', '/refusals', '/history']) {
      expect([path, mistakesOf(answerOf(path), await get(path))]).toEqual([path, null])
    }
    live.close()
    await app.close()
    await limiter.close()
  })
})
