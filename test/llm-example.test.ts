import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { createLimiter } from 'diana-limiter'
import { afterEach, expect, test } from 'vitest'
import { parse } from 'yaml'
// @ts-expect-error: an example in JavaScript
import { createLlmServer } from '../examples/llm/server.mjs'
import { GatewayRig } from './helpers/gateway-rig.ts'
import { build, startProgram } from './helpers/program-rig.ts'
import { startRedis } from './helpers/servers/redis-server.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

const document = parse(readFileSync(new URL('../examples/llm/diana.yaml', import.meta.url), 'utf8'))
const LIMIT = 1000
const HOLD_MS = 1000

interface Asked {
  readonly tokens: number
  readonly behave?: string
  readonly stream?: boolean
}

const bodyOf = ({ tokens, stream = true }: Asked) => Buffer.from(JSON.stringify({ stream, max_tokens: tokens }))
/** The tokens of the request itself, as the stand-in counts them. */
const inputOf = (asked: Asked) => Math.ceil(bodyOf(asked).length / 4)

async function ask(url: string, asked: Asked): Promise<IncomingMessage> {
  const body = bodyOf(asked)
  const behave = asked.behave === undefined ? {} : { 'x-behave': asked.behave }
  const headers = { 'content-type': 'application/json', 'content-length': body.length, 'x-api-key': 'ann', ...behave }
  const request = httpRequest(`${url}/v1/chat/completions`, { method: 'POST', headers, agent: false })
  request.on('error', () => {}).end(body)
  return (await once(request, 'response'))[0] as IncomingMessage
}

test('the LLM example: the budget empties as the usage says, and every ending is as the docs promise', async () => {
  build()
  const to = await rig.listen(createLlmServer())
  const redis = await startRedis()
  rig.later(() => redis.close())
  const rules = document.rules.map((rule: { id: string; cost?: object }) =>
    rule.cost ? { ...rule, cost: { ...rule.cost, hold: `${HOLD_MS}ms` } } : rule,
  )
  const gateway = { routes: [{ to, timeouts: { headers: '300ms' } }] }
  const words = { ...document, rules, store: { redis: `redis://${redis.authority}` } }
  const { url, child, ended } = await startProgram(rig, { ...words, gateway })
  const { gateway: _, ...own } = words
  const limiter = await createLimiter(own)
  rig.later(() => limiter.close())
  const left = async (): Promise<number> => {
    const call = { method: 'POST', path: '/v1/chat/completions', headers: { 'x-api-key': 'ann' } }
    const { decisions } = await limiter.peek(call, { cost: 0 })
    return decisions.find(({ rule }) => rule === 'tokens-per-minute')!.remaining
  }
  const expectLeft = (amount: number) => expect.poll(left, { timeout: 5000, interval: 20 }).toBe(amount)

  // every byte of a stream arrives, and what it reports is charged
  const direct = Buffer.concat(await (await ask(to, { tokens: 150 })).toArray())
  const response = await ask(url, { tokens: 150 })
  expect(Buffer.concat(await response.toArray()).equals(direct)).toBe(true)
  let budget = LIMIT - 150 - inputOf({ tokens: 150 })
  await expectLeft(budget)
  expect(response.headers['x-ratelimit-limit-tokens']).toBe('1000')
  expect(response.headers['x-ratelimit-limit-requests']).toBe('60')
  expect(response.headers['ratelimit-policy']).toContain('"tokens-per-minute";q=1000;qu="tokens";w=60')

  // an error of the service, and a service that does not answer, cost nothing
  for (const behave of ['error', 'hang']) await (await ask(url, { tokens: 200, behave })).toArray()
  await expectLeft(budget)

  // a caller who leaves pays the estimate, since the usage was not sent yet
  const slow = await ask(url, { tokens: 200, behave: 'slow' })
  await once(slow, 'data')
  slow.destroy()
  budget -= 200 + inputOf({ tokens: 200 })
  await expectLeft(budget)

  // what does not fit is refused, and says when to come again
  const refused = await ask(url, { tokens: 700 })
  expect([refused.statusCode, Number(refused.headers['retry-after']) > 0]).toEqual([429, true])
  await expectLeft(budget)

  // a gateway that is killed gives its reservations back when `hold` is over
  const open = await ask(url, { tokens: 300, behave: 'slow' })
  open.on('error', () => {})
  await once(open, 'data')
  await expectLeft(budget - 300 - inputOf({ tokens: 300 }))
  child.kill('SIGKILL')
  await ended
  await expectLeft(budget)
})
