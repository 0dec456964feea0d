import 'reflect-metadata'
import { createServer } from 'node:http'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import Bottleneck from 'bottleneck'
import { createLimiter, type Limiter, type LimiterOptions, RateLimiter } from 'diana-limiter'
import { RateLimit, rateLimited } from 'diana-limiter/decorators'
import { rateLimit as onExpress } from 'diana-limiter/express'
import { rateLimit as onFastify } from 'diana-limiter/fastify'
import { DianaModule, SkipRateLimit } from 'diana-limiter/nest'
import express from 'express'
import fastify from 'fastify'
import pLimit from 'p-limit'
import PQueue from 'p-queue'
import { expect, vi } from 'vitest'
import { parse } from 'yaml'
import { listen } from '../helpers/filters/listen.ts'
import type { Row } from './row.ts'

/** Ends what a row has started. */
export type Closing = (() => unknown)[]

interface Call {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
}

interface Answer {
  readonly status: number
  readonly body: string
  readonly headers: Headers
}

/** Values that the text of rows may name. */
export interface Values {
  readonly client?: unknown
  readonly [name: string]: unknown
}

const START = 1_700_000_040_000

/** Runs a row: what stands in the page is what runs. */
export async function play(row: Row, values: Values, closing: Closing): Promise<void> {
  let nowMs = START
  const all = {
    ...values,
    clock: () => nowMs,
    onExpress,
    onFastify,
    fastify,
    RateLimit,
    SkipRateLimit,
    rateLimited,
    createLimiter,
    RateLimiter,
  }
  const pass = (seconds: number): void => {
    nowMs += seconds * 1000
  }
  if (row.as === 'program') await runProgram(row, all, closing)
  else if (row.as === 'jobs') await runJobs(row, all, closing)
  else if (row.as === 'rule') await runRule(row, all.clock, pass, closing)
  else await runFilter(row, all, pass, closing)
}

async function runFilter(row: Row, values: Values, pass: (seconds: number) => void, closing: Closing): Promise<void> {
  const url = await starts[row.as as keyof typeof starts](row, values, closing)
  let last: Answer | undefined
  const seen: string[] = []
  for (const step of row.calls!.split(' ')) {
    const seconds = /^@(\d+)$/.exec(step)?.[1]
    if (seconds !== undefined) pass(Number(seconds))
    else {
      const { path, headers } = callOf(step)
      const response = await fetch(url + path, { headers })
      last = { status: response.status, headers: response.headers, body: await response.text() }
    }
    seen.push(seconds === undefined ? step.replace(/\d{3}$/, String(last!.status)) : step)
  }
  expect(seen.join(' ')).toBe(row.calls)
  const { body, headers = {} } = row.last ?? {}
  if (body !== undefined) expect(typeof body === 'string' ? last!.body : JSON.parse(last!.body)).toEqual(body)
  for (const [name, value] of Object.entries(headers)) {
    const got = last!.headers.get(name)
    if (value instanceof RegExp) expect(got).toMatch(value)
    else expect(got).toBe(value ?? null)
  }
}

/** `ann=200`, `/health=200`, `203.0.113.1=200`, `!401`. */
export function callOf(step: string): Call {
  const [, who = '', kind = '=', status = ''] = /^(?:(\S*)([=!]))?(\d{3})$/.exec(step) ?? []
  const isAddress = /^[\da-f]+[.:]/.test(who)
  return {
    path: who.startsWith('/') ? who : '/',
    headers: {
      ...(kind === '!' && { 'x-wants': status }),
      ...(isAddress && { 'x-forwarded-for': who }),
      ...(who !== '' && !isAddress && !who.startsWith('/') && { 'x-api-key': who }),
    },
  }
}

const starts = {
  express: async (row: Row, values: Values, closing: Closing) => {
    const limit = onExpress(optionsOf(row, values) as never)
    const app = express().use(limit, (request, response) => {
      response.status(Number(request.get('x-wants') ?? 200)).send('served')
    })
    const { port, close } = await listen(createServer(app))
    closing.push(limit.close, close)
    return `http://127.0.0.1:${port}`
  },
  fastify: async (row: Row, values: Values, closing: Closing) => {
    const app = fastify({ forceCloseConnections: true }).register(onFastify(optionsOf(row, values) as never))
    app.get('/*', async () => 'served')
    closing.push(() => app.close())
    return await app.listen({ port: 0, host: '127.0.0.1' })
  },
  nest: async (row: Row, values: Values, closing: Closing) => {
    class Calls {
      serve(): string {
        return 'served'
      }
    }
    const method = Object.getOwnPropertyDescriptor(Calls.prototype, 'serve')!
    Get(['/', 'health'])(Calls.prototype, 'serve', method)
    if (row.ours.startsWith('@')) {
      const decorate = evaluate(row.ours.slice(1), values) as MethodDecorator
      decorate(Calls.prototype, 'serve', method)
    }
    Controller()(Calls)
    class Application {}
    const [, options] = /^DianaModule\.forRoot\(\{ (.*) \}\)$/.exec(row.ours) ?? []
    // a module for decorators has a limit of its own: many calls beside @RateLimit, one beside @SkipRateLimit
    const other = row.ours.startsWith('@RateLimit') ? "limit: '9/m'" : "limit: '1/m'"
    const module = DianaModule.forRoot(optionsOf({ ...row, ours: options ?? other }, values) as never)
    Module({ imports: [module], controllers: [Calls] })(Application)
    const app = await NestFactory.create(Application, { logger: false })
    closing.push(() => app.close())
    await app.init()
    const { port, close } = await listen(app.getHttpServer())
    closing.push(close)
    return `http://127.0.0.1:${port}`
  },
}

/** The options in the text of a row; a limit of one call unless it has another. */
function optionsOf({ ours, beside = '' }: Row, values: Values): object {
  const given = evaluate(`({ ${[ours, beside].filter(text => text !== '').join(', ')} })`, values) as object
  return { limit: '1/m', clock: values.clock, ...given }
}

async function runRule(
  row: Row,
  clock: () => number,
  pass: (seconds: number) => void,
  closing: Closing,
): Promise<void> {
  const rule = { id: 'rule', ...(parse(row.ours) as object) }
  const limiter = await createLimiter({ rules: [rule as never], clock, trustProxy: 0 })
  closing.push(() => limiter.close())
  const seen: string[] = []
  for (const step of row.calls!.split(' ')) {
    if (step.startsWith('@')) pass(Number(step.slice(1)))
    seen.push(step.startsWith('@') ? step : step.replace(/(?:\+\d+|\d{3})$/, await decided(limiter, step)))
  }
  expect(seen.join(' ')).toBe(row.calls)
}

async function decided(limiter: Limiter, step: string): Promise<string> {
  const [, who = ''] = /^(?:([^=]*)=)?/.exec(step) ?? []
  const isAddress = /^\d+\./.test(who)
  const headers = isAddress || who === '' ? {} : { 'x-api-key': who }
  const call = { method: 'GET', path: '/', host: 'example.com', ip: isAddress ? who : '198.51.100.1', headers }
  const ahead = await limiter.peek(call)
  const pending = limiter.check(call)
  // the clock stands still, so a call that waits never ends its wait
  if (ahead.allowed && ahead.waitMs > 0) {
    pending.catch(() => {})
    return `+${ahead.waitMs}`
  }
  const { allowed, answer } = await pending
  return allowed ? '200' : String(answer.status)
}

async function runProgram({ ours, beside = '', gives }: Row, values: Values, closing: Closing): Promise<void> {
  const [rule, more = beside] = beside.startsWith('{')
    ? [beside.split('; ')[0]!, beside.split('; ').slice(1).join('; ')]
    : []
  const limiter =
    rule === undefined
      ? undefined
      : await createLimiter({ rules: [evaluate(`(${rule})`, values)], clock: values.clock } as LimiterOptions)
  if (limiter) closing.push(() => limiter.close())
  const isCheck = typeof gives === 'string' && /[=,]/.test(gives)
  const isRoute = ours.startsWith('app.')
  const end = isRoute
    ? "return (await Promise.all(['/one', '/one', '/other'].map(url => app.inject({ url })))).map(one => one.statusCode)"
    : `const made = ${ours}; ${isCheck ? `const result = (${gives}); made?.close?.(); return result` : 'return made'}`
  const program = `return (async () => { ${more}; ${isRoute ? `${ours};` : ''} ${end} })()`
  const result = await (new Function(...Object.keys(values), 'limiter', program)(
    ...Object.values(values),
    limiter,
  ) as unknown)
  expect(result).toEqual(isCheck ? true : gives)
}

type Job = () => Promise<void>
type Schedule = (job: Job, index: number) => Promise<unknown>

/** Runs jobs by Diana and by the other limiter, in virtual time: each begins at the same moment, or is rejected, in both. */
async function runJobs(row: Row, values: Values, closing: Closing): Promise<void> {
  const { starts } = row.jobs!
  expect(await timesOf(row, await ourSchedule(row, values, closing))).toEqual(starts)
  const peer = new Function('Bottleneck', 'pLimit', 'PQueue', 'work', row.peer!)(
    ...[Bottleneck, pLimit, PQueue, (job: Job) => job()],
  ) as Schedule
  expect(await timesOf(row, peer)).toEqual(starts)
}

async function timesOf({ jobs }: Row, schedule: Schedule): Promise<(number | undefined)[]> {
  const { count, workMs, starts } = jobs!
  const times: (number | undefined)[] = Array.from({ length: count })
  const begin = Date.now()
  let ended = 0
  for (let i = 0; i < count; i++) {
    const job = async (): Promise<void> => {
      // bottleneck begins a job some milliseconds after the one before has ended
      times[i] = Math.round((Date.now() - begin) / 50) * 50
      await new Promise(resolve => setTimeout(resolve, workMs))
    }
    void schedule(job, i)
      .catch(() => {})
      .finally(() => {
        ended++
      })
  }
  await vi.advanceTimersByTimeAsync(Math.max(...starts.map(start => start ?? 0)) + workMs + 1000)
  expect(ended).toBe(count)
  return times
}

/** A rule, a limited function, or statements with a limiter. */
async function ourSchedule(row: Row, values: Values, closing: Closing): Promise<Schedule> {
  const { ours, beside } = row
  vi.useFakeTimers({ now: START })
  closing.push(() => vi.useRealTimers())
  const isRule = ours.startsWith('{')
  const rule = isRule
    ? { id: 'login', match: 'none', ...(parse(ours) as object) }
    : beside && evaluate(`(${beside})`, values)
  const limiter = await createLimiter({ rules: rule ? [rule as never] : [], clock: () => Date.now() })
  closing.push(() => limiter.close())
  const work = (job: Job): Promise<void> => job()
  if (ours.startsWith('rateLimited')) {
    const limited = evaluate(ours.replace('{', '{ limiter,'), { ...values, limiter, work }) as (
      job: Job,
    ) => Promise<void>
    return job => Promise.resolve(limited(job))
  }
  if (ours.startsWith('RateLimiter')) {
    const made = evaluate(ours, { ...values, Infinity: Number.POSITIVE_INFINITY }) as RateLimiter | RateLimiter['limit']
    if (typeof made === 'function') return job => made(job)
    const optionsOf = row.options === undefined ? undefined : (evaluate(row.options, {}) as (index: number) => object)
    return (job, index) => made.schedule(job, optionsOf?.(index))
  }
  if (!isRule) {
    const run = new Function('limiter', 'work', `return (async () => { ${ours} })()`)
    return job => run(limiter, () => job()) as Promise<void>
  }
  return async (job, index) => {
    const attributes = { account: index % 2 === 1 ? 'ann' : 'bob' }
    const verdict = await limiter.check({ method: 'GET', path: '/', attributes }, { rule: 'login' })
    if (!verdict.allowed) throw new Error(verdict.reason)
    await job().finally(() => verdict.end())
  }
}

function evaluate(text: string, values: Values): unknown {
  return new Function(...Object.keys(values), `return ${text}`)(...Object.values(values))
}
