import { isIP } from 'node:net'
import { type Call, callerAddress, describeKey, type Limiter, normalizeTarget } from 'diana-limiter'
import type { CallerUsage } from 'diana-limiter/admin'
import { adminOf, callOfKey } from 'diana-limiter/admin'
import { z } from 'diana-limiter/schema'
import { Refusal } from '../../http/refusal.ts'
import type { Processes } from '../processes.ts'
import { readRequest, type WrittenRequest } from '../read-request.ts'
import { findCaller } from './callers.ts'
import { type Operation, operation } from './operation.ts'
import { call, estimate, milliseconds, unit } from './shapes.ts'

const MOST_MISSES = 100

const written = z.strictObject({
  request: z.string().max(65_536).describe('a curl command, or METHOD path and headers as they stand on the wire'),
  ip: z.string().max(64).optional(),
})

const ofCaller = z.strictObject({
  caller: z.string().max(64).describe('the id of a caller: their last call that was read is explained'),
})

const decision = z
  .object({
    rule: z.string(),
    limit: z.number(),
    periodMs: z.number(),
    unit: z.string().optional().describe('What the rule counts, if not calls, such as tokens.'),
    calendar: unit,
    allowed: z.boolean(),
    shadow: z.boolean(),
    remaining: z.number(),
    resetAfterMs: milliseconds,
    retryAfterMs: milliseconds,
  })
  .meta({ title: 'Decision' })

const keyPart = z
  .object({ countedBy: z.enum(['value', 'digest', 'address', 'absence']), value: z.string() })
  .meta({ title: 'KeyPart' })

const explanation = z
  .looseObject({
    rule: z.string(),
    algorithm: z.string(),
    key: z.record(z.string(), keyPart),
    limits: z.array(z.object({ count: z.number(), periodMs: z.number(), unit })),
    limitFrom: z
      .string()
      .optional()
      .describe('Where a limit that depends on the caller comes from: plan pro, override until …, default.'),
    burst: z.number().optional(),
    decisions: z.array(decision),
    estimate: estimate
      .optional()
      .describe(
        'What an adaptive rule has found for this key: the sum of all processes of this gateway, times the average.',
      ),
    credit: z
      .int()
      .min(0)
      .optional()
      .describe('Permits that the caller has beside the limit, if the rule has `credit`.'),
    leased: z
      .int()
      .min(1)
      .optional()
      .describe('Permits of this key that the processes of this gateway hold in advance.'),
  })
  .meta({ title: 'RuleExplanation' })

/** A state of the caller, beside the counts, that decides the call. */
const standing = z.object({
  is: z.enum(['allowed', 'denied', 'blocked']),
  rule: z.string().optional(),
  leftMs: z.number().optional(),
  means: z.string(),
})

export const explainOperations: readonly Operation[] = [
  operation({
    method: 'POST',
    path: '/explain',
    role: 'viewer',
    summary:
      'Which rules a call meets, under which key, with which numbers, and whether its caller is on a list or blocked; counts nothing.',
    body: z.union([written, ofCaller, call]),
    answer: z
      .object({
        call: z.object({ method: z.string(), path: z.string(), ip: z.string().optional() }).loose(),
        caller: z.array(standing),
        rules: z.array(explanation),
        misses: z
          .array(z.object({ rule: z.string(), reason: z.string() }))
          .describe('rules that do not match, and why'),
        allowed: z.boolean(),
        refusedBy: z.string().optional(),
        reason: z.string().optional(),
        retryAfterMs: milliseconds,
        answer: z.object({ status: z.int(), headers: z.string() }),
        request: z.string().optional().describe('the explained call of a caller, as it can be asked about again'),
      })
      .meta({ title: 'Explanation' }),
    refusals: { 404: 'there is no such caller' },
    run: async ({ body }, { limiter, processes }) => {
      const { asked, text } =
        'caller' in body ? await lastCallOf(body.caller, limiter, processes) : writtenCall(body, limiter)
      const [rules, verdict] = [await limiter.explain(asked), await limiter.peek(asked)]
      const [leased, estimates] = [await processes.leasedFor(asked), await processes.estimatesFor(asked)]
      // no rule is asked about a caller who is denied
      const misses = verdict.reason === 'denied' ? [] : adminOf(limiter).explainMisses(asked).slice(0, MOST_MISSES)
      const { method, path, query, ip, host, headers } = asked
      return {
        call: { method, path, query, ip, host, headers },
        caller: rules.caller,
        rules: rules.map(rule => ({
          ...rule,
          ...(leased.has(rule.rule) && { leased: leased.get(rule.rule) }),
          ...(estimates.has(rule.rule) && { estimate: estimates.get(rule.rule) }),
        })),
        misses,
        allowed: verdict.allowed,
        refusedBy: verdict.rule,
        reason: verdict.reason,
        retryAfterMs: verdict.retryAfterMs,
        answer: verdict.answer,
        ...(text !== undefined && { request: text }),
      }
    },
  }),
]

interface AskedCall {
  readonly asked: Call
  readonly text?: string | undefined
}

function writtenCall(body: z.output<typeof written> | z.output<typeof call>, limiter: Limiter): AskedCall {
  return { asked: toCall('request' in body ? readRequest(body.request) : fromParts(body), body.ip, limiter) }
}

/** Returns the last call of a caller that was read, counted as the rule counted it. */
async function lastCallOf(id: string, limiter: Limiter, processes: Processes): Promise<AskedCall> {
  const found = await findCaller(processes, id)
  if (!found) throw new Refusal(404, 'There is no such caller: ask for the callers again.')
  const keyed = callOfKey(found.key, found.by)
  if (!keyed) throw new Refusal(400, 'This caller is only known by a digest: paste one of their requests.')
  const { method, path, ip } = { method: 'GET', path: '/', ip: keyed.ip, ...found.example }
  const text = requestOf(found, { method, path }, adminOf(limiter).identify)
  return { asked: { ...keyed, method, path, caseInsensitive: true, ip: keyed.ip ?? ip }, text }
}

export function fromParts({ method, path, headers }: z.output<typeof call>): WrittenRequest {
  const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  return { method: method.toUpperCase(), target: path, headers: Object.fromEntries(lower) }
}

/** Returns the call that a filter would make of a request from `ip`. */
export function toCall({ method, target, headers }: WrittenRequest, ip: string | undefined, limiter: Limiter): Call {
  const place = normalizeTarget(target)
  if (place === undefined) throw new Refusal(400, 'This path cannot be read: write one such as /orders/1.')
  const peer = ip ?? '127.0.0.1'
  if (isIP(peer) === 0) throw new Refusal(400, 'This is no address: write one such as 203.0.113.9.')
  const address = callerAddress(limiter, peer, headers)
  return {
    method,
    path: place.path,
    caseInsensitive: true,
    query: place.query,
    ip: address,
    host: headers.host,
    headers,
  }
}

/** Returns a request that a caller could have sent, as Explain reads it; undefined if a value of the key cannot be written there. */
function requestOf(
  { key, by }: Pick<CallerUsage, 'key' | 'by'>,
  { method, path }: { readonly method: string; readonly path: string },
  identify: Readonly<Record<string, readonly string[]>>,
): string | undefined {
  const headers: string[] = []
  const query: string[] = []
  for (const [name, { countedBy, value }] of Object.entries(describeKey(key, by))) {
    if (countedBy === 'absence' || countedBy === 'address' || fromAddress.has(name)) continue
    const source = (Object.hasOwn(identify, name) ? identify[name] : [name])?.find(one =>
      /^(header|query|cookie):/.test(one),
    )
    const [, kind, field] = /^(\w+):(.+)$/.exec(source ?? '') ?? []
    // a line break would begin another header
    if (field === undefined || /[\r\n]/.test(value)) return undefined
    if (kind === 'query') query.push(`${encodeURIComponent(field)}=${encodeURIComponent(value)}`)
    else headers.push(kind === 'header' ? `${field}: ${value}` : `cookie: ${field}=${value}`)
  }
  const target = query.length === 0 ? path : `${path}?${query.join('&')}`
  return [`${method} ${target}`, ...headers].join('\n')
}

/** Dimensions that the path, the method or the connection already gives. */
const fromAddress = new Set(['ip', 'path', 'method', 'resource', 'host'])
