import { STATUS_CODES } from 'node:http'
import { type Call, DianaError, type Limiter, rateLimitHeaders, refusal, type Verdict } from 'diana-limiter'
import { explain, type z } from 'diana-limiter/schema'
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify'
import { Refusal, sendRefusal } from '../../http/refusal.ts'
import { endUnreported } from '../calls/end-unreported.ts'
import type { Peers } from '../calls/peers.ts'
import { proxiedCall } from '../calls/proxied-call.ts'
import { type AskedCall, type CheckQuestion, checkAnswer, checkQuestion } from './check-shapes.ts'
import { type ApiOperation, describeApi } from './openapi.ts'
import { reservationOperations } from './reservations.ts'

export interface JsonApiParts {
  readonly limiter: Limiter
  readonly peers: Peers
  readonly version: string
}

/** Adds the API for programs in any language: JSON in, JSON out. */
export function addJsonApi(app: FastifyInstance, parts: JsonApiParts): void {
  const operations = operationsOf(parts.limiter)
  app.setErrorHandler((error: FastifyError | Error, _request, reply) => sendRefusal(reply, toRefusal(error)))
  app.setNotFoundHandler((_request, reply) => sendRefusal(reply, new Refusal(404, 'There is nothing here.')))
  app.addHook('onRequest', async request => {
    if (parts.peers.mayAsk(request.raw.socket)) return
    throw new Refusal(403, 'This peer may not ask: add its address to trustProxy in the rule file.')
  })
  app.get('/v1/openapi.json', async () => describeApi(operations, parts.version))
  for (const { path, body, run } of operations) {
    app.post(path, async (request, reply) => send(reply, await run(read(body, request.body))))
  }
}

function operationsOf(limiter: Limiter): readonly ApiOperation[] {
  return [
    {
      path: '/v1/check',
      summary: 'Decides a call and counts it, or several calls, each by itself or all together.',
      body: checkQuestion,
      answer: checkAnswer,
      run: async body => await check(limiter, body as CheckQuestion),
    },
    ...reservationOperations({ limiter, callOf, resultOf: describeVerdict }),
  ]
}

async function check(limiter: Limiter, body: CheckQuestion): Promise<object> {
  if (!('calls' in body)) return resultOf(await decide(limiter, body))
  const { calls, together } = body
  const verdicts = together
    ? await limiter.decideTogether(
        calls.map(asked => ({ ...namedRules(asked), call: callOf(asked), cost: asked.cost })),
      )
    : await Promise.all(calls.map(asked => decide(limiter, asked)))
  return { allowed: verdicts.every(({ allowed }) => allowed), results: verdicts.map(resultOf) }
}

async function decide(limiter: Limiter, asked: AskedCall): Promise<Verdict> {
  const call = callOf(asked)
  const { cost } = asked
  return await (cost === 0
    ? limiter.peek(call, { ...namedRules(asked), cost: 1 })
    : limiter.check(call, { ...namedRules(asked), cost }))
}

function namedRules({ rules }: AskedCall): { readonly rule?: readonly string[]; readonly only?: true } {
  return rules === undefined ? {} : { rule: rules, only: true }
}

/** Returns the call that a program describes, spelled as the gateway spells calls; a refusal if it cannot be. */
function callOf({ method, path, host, ip, headers, attributes }: AskedCall): Call {
  const lower =
    headers && Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const call = proxiedCall({ method, target: path, host, ip, headers: lower, attributes })
  if (typeof call === 'string') throw new Refusal(400, call)
  return call
}

/** Returns the verdict on a call whose end is not reported. */
function resultOf(verdict: Verdict): object {
  endUnreported(verdict)
  return describeVerdict(verdict)
}

/** Returns a verdict as JSON. */
function describeVerdict(verdict: Verdict): object {
  const { allowed, rule, reason, retryAfterMs, decisions } = verdict
  const now = Date.now()
  const answer = allowed ? { status: 200, headers: rateLimitHeaders(verdict, now) } : refusal(verdict, now)
  return {
    ...{ allowed, rule, reason, retryAfterMs: finite(retryAfterMs), status: answer.status },
    headers: Object.fromEntries(answer.headers),
    ...('body' in answer && { body: answer.body }),
    decisions: decisions.map(one => ({
      ...one,
      resetAfterMs: finite(one.resetAfterMs),
      retryAfterMs: finite(one.retryAfterMs),
    })),
  }
}

function finite(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null
}

function read(shape: z.Schema, value: unknown): unknown {
  const { data, problems } = explain(shape, value)
  const [problem] = problems
  if (problem === undefined) return data
  const at = problem.path.map(String).join('.')
  throw new Refusal(400, `${at === '' ? 'the body' : at} ${problem.what}`.slice(0, 500))
}

function send(reply: FastifyReply, answer: object): FastifyReply {
  return reply.header('Cache-Control', 'no-store').send(answer)
}

function toRefusal(error: FastifyError | Error): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof DianaError) return new Refusal(error.code === 'BAD_CALL' ? 400 : 503, error.message)
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500
  return new Refusal(status, status < 500 ? error.message : (STATUS_CODES[status] ?? 'Diana failed'))
}
