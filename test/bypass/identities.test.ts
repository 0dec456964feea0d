import { createServer } from 'node:http'
import { connect } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { randomRuns } from '@test/random-runs'
import express from 'express'
import fc from 'fast-check'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { expect, test } from 'vitest'
import type { Call } from '../../packages/limiter/src/call.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { findDimension } from '../../packages/limiter/src/dimensions/find-dimension.ts'
import { dimensions } from '../../packages/limiter/src/dimensions/index.ts'
import { diana as expressFilter } from '../../packages/limiter/src/filters/express.ts'
import { diana as fastifyFilter } from '../../packages/limiter/src/filters/fastify.ts'
import { diana as fetchFilter } from '../../packages/limiter/src/filters/fetch.ts'
import { diana as honoFilter } from '../../packages/limiter/src/filters/hono.ts'
import { diana as httpFilter } from '../../packages/limiter/src/filters/http.ts'
import { diana as koaFilter } from '../../packages/limiter/src/filters/koa.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import type { ServerUnderTest } from '../../packages/limiter/src/testing/filters/suite.ts'
import { listen } from '../helpers/filters/listen.ts'

// A rule by a header counts what the application behind the filter reads as that header: two calls of one identity to the
// application must be one caller to the rule, however the header is sent, or a caller gets a fresh count.

const names = ['x-api-key', 'x_api_key', 'authorization', 'user-agent', 'from'] as const

type Seen = Record<string, string>
type Start = (limiter: Limiter) => Promise<ServerUnderTest>
const inJson = (read: (name: string) => string | undefined): string =>
  JSON.stringify(Object.fromEntries(names.map(name => [name, read(name) ?? ''])))

const starts: Readonly<Record<string, Start>> = {
  'node:http': limiter =>
    listen(
      createServer(
        httpFilter(limiter, ({ headers }, response) => response.end(inJson(name => headers[name] as string))),
      ),
    ),
  Express: limiter => {
    const app = express().use(expressFilter(limiter))
    return listen(createServer(app.use((incoming, response) => void response.end(inJson(name => incoming.get(name))))))
  },
  Fastify: async limiter => {
    const app = fastify({ forceCloseConnections: true })
    app.register(fastifyFilter(limiter))
    app.get('/', async ({ headers }) => inJson(name => headers[name] as string))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return { port: Number(new URL(app.listeningOrigin).port), close: () => app.close() }
  },
  Koa: limiter => {
    const app = new Koa().use(koaFilter(limiter)).use(context => {
      context.body = inJson(name => context.get(name))
    })
    return listen(createServer(app.callback()))
  },
  Hono: limiter => {
    const app = new Hono()
    app.use(honoFilter(limiter))
    app.get('/', context => context.body(inJson(name => context.req.header(name))))
    return listen(createServer(getRequestListener(app.fetch)))
  },
  fetch: limiter => {
    const handle = fetchFilter(limiter).wrap(
      (incoming: Request, _info: object) => new Response(inJson(name => incoming.headers.get(name) ?? undefined)),
    )
    return listen(createServer(getRequestListener(handle as never)))
  },
}

const value = fc.oneof(
  fc.constantFrom('A', 'a', ' A', 'A ', '\tA', 'A,B', 'A, B', 'A , B', ',A', 'A,', '', ' ', '"A"', 'A;B', '__proto__'),
  fc.constantFrom('Bearer t', 'bearer t', 'BEARER  t', 'Basic t', 't'),
  fc
    .constantFrom('café', 'cafe\u0301', '１', 'A\u00a0', '\u00a0A', 'Å')
    .map(text => Buffer.from(text).toString('latin1')),
  fc.constantFrom('A\xa0', '\xe9', 'A\x7f'),
)
const name = fc.constantFrom(...names).chain(text =>
  fc.constantFrom(
    text,
    text.toUpperCase(),
    text.replaceAll(/\b\w/g, letter => letter.toUpperCase()),
  ),
)
const lines = fc.array(fc.tuple(name, fc.constantFrom(': ', ':', ':  '), value), { minLength: 1, maxLength: 4 })

const plain = (text: string): string => text.trim().replace(/^\S+\s+/, scheme => `${scheme.trim().toLowerCase()} `)

/** What the application saw of one request; undefined if it was not served. */
async function send(port: number, id: number, headers: readonly (readonly string[])[]): Promise<Seen | undefined> {
  const socket = connect(port, '127.0.0.1')
  const text = headers.map(line => `${line.join('')}\r\n`).join('')
  socket
    .setEncoding('utf8')
    .write(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Id: ${id}\r\n${text}\r\n`, 'latin1')
  let answer = ''
  try {
    for await (const piece of socket) answer += piece
  } catch {
    // a server may cut a connection that it does not like
  }
  return /^HTTP\/1\.1 200/.test(answer) ? (JSON.parse(/\{.*\}/.exec(answer)![0]) as Seen) : undefined
}

test.each(Object.entries(starts))(
  '%s: one identity of the application is one caller of a rule',
  async (_name, start) => {
    const counted = new Map<string, Seen>()
    const spy = {
      name: 'spy',
      argument: 'none' as const,
      read: (call: Call): string => {
        const keys = names.map(one => [one, findDimension(`header:${one}`, dimensions)!(call) ?? ''])
        counted.set(String(call.headers?.['x-id']), Object.fromEntries(keys) as Seen)
        return ''
      },
    }
    const limiter = await createLimiter({
      rules: [{ id: 'spied', by: 'spy', limit: '60000000/s' }],
      dimensions: [...dimensions, spy],
    })
    const server = await start(limiter)
    const keysOf = new Map<string, Set<string>>()
    let served = 0
    try {
      const samples = fc.sample(lines, { numRuns: randomRuns(160), seed: 7 })
      for (let at = 0; at < samples.length; at += 8) {
        const answers = samples.slice(at, at + 8).map((headers, place) => send(server.port, at + place, headers))
        for (const [place, seen] of (await Promise.all(answers)).entries()) {
          if (seen === undefined) continue
          served++
          for (const one of names) {
            const identity = JSON.stringify([one, seen[one]])
            const key = counted.get(`${at + place}`)![one]!
            keysOf.set(identity, (keysOf.get(identity) ?? new Set()).add(key))
          }
        }
      }
    } finally {
      await server.close()
      await limiter.close()
    }
    expect(served).toBeGreaterThan(30)
    const split = [...keysOf].filter(([, keys]) => keys.size > 1).map(([identity, keys]) => [identity, ...keys])
    expect(split).toEqual([])
    // the other side: callers that the application distinguishes are not one, but for blanks, the case of a scheme, and second lines,
    // of which Node drops those of some headers that `Headers` joins
    const joined = [...keysOf].filter(([identity, keys]) => {
      const [of, seen] = JSON.parse(identity) as [string, string]
      if (!of.startsWith('x') && seen.includes(',')) return false
      return [...keys].some(key => plain(seen) !== plain(key))
    })
    expect(joined.map(([identity, keys]) => [identity, ...keys])).toEqual([])
  },
)
