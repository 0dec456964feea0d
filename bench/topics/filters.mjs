// Filters: what a framework keeps of its speed with a limiter in front of it. Server and load are processes of their own;
// they share the machine, so the CPU that the server spends on a call is compared first, and calls per second beside it.

import { timeRequests } from '../load/in-process.mjs'
import { underLoad } from '../load/under-load.mjs'
import { startServer } from '../servers/start-server.mjs'

const frameworks = ['express', 'fastify', 'http', 'hono', 'koa', 'nest']
const titles = {
  express: 'Express 5',
  fastify: 'Fastify 5',
  http: 'node:http',
  hono: 'Hono 4 on Node',
  koa: 'Koa 3',
  nest: 'Nest 11 on Express',
}
// the others are shown, and measured once
const marked = ['express', 'fastify']
const CONNECTIONS = 64

export const programs = ['wrk']

export const peers = [
  'express',
  'express-rate-limit',
  'fastify',
  '@fastify/rate-limit',
  'hono',
  '@hono/node-server',
  'hono-rate-limiter',
  'koa',
  'koa-ratelimit',
  '@nestjs/core',
  '@nestjs/throttler',
]

export const about = `One route that answers with a small JSON document, called by \`wrk\` over ${CONNECTIONS} connections for a thousand accounts in turn.
Load and server share this machine's cores, so the figure to compare is the CPU that the server process spends on a call; the tables also
show calls per second and the times a caller sees under full load. "One rule" is a limit per account in a fixed window, as
the peers count; "four rules" are the whole service, each account, each device and each resource in sliding windows. Every
limiter writes its headers, unless it is named "no headers" (\`answer: { headers: none }\`). "Bare, two headers more" is the framework
writing two fixed headers of that size, and "two headers that change" the same with a number that counts down: the minimum cost of any
limiter that reports the state of the limits to callers, and so the floor of the targets below; "headers of four limits that
change" is the floor with four rules.
"In process" is the same without a network: the framework's request listener, called with Node's request and response, one
request at a time, until the last byte is written; nothing but the framework and the limiter is measured.

- express-rate-limit: its README's settings, \`draft-8\` headers and no legacy ones; four of them in a row for four limits: a refused call
  has already been charged by those before the one that refuses.
- @fastify/rate-limit: its README's settings; a request can have one limit only.
- hono-rate-limiter: \`draft-6\` headers, its default; koa-ratelimit: the memory driver of its README.
- @nestjs/throttler: its guard for the whole application, and four named throttlers for four limits.
`

const modules = await Promise.all(
  frameworks.map(async framework => {
    const { subjects } = await import(`../frameworks/${framework}.mjs`)
    const rounds = marked.includes(framework) ? undefined : 1
    return { framework, rounds, subjects }
  }),
)

const underLoadCases = modules.map(({ framework, rounds, subjects }) => {
  return { name: titles[framework], unit: 'CPU µs/call', framework, rounds, subjects: Object.keys(subjects) }
})

const inProcessCases = modules.map(({ framework, rounds, subjects }) => ({
  ...{ name: `${titles[framework]}, in process`, unit: 'ns/op', framework, rounds, subjects: Object.keys(subjects) },
  inProcess: subjects,
}))

export const cases = [...underLoadCases, ...inProcessCases]

export const charted = underLoadCases.map(({ name }) => name)

/** What design asks for: CPU per call is what bounds a server's throughput. */
export const marks = [
  { case: titles.fastify, ours: 'diana, one rule', theirs: 'bare', times: 1.1 },
  { case: titles.fastify, ours: 'diana, four rules', theirs: 'bare', times: 1.2 },
  // 95 % of the calls of a bare server
  { case: titles.express, ours: 'diana, one rule', theirs: 'bare', times: 1 / 0.95 },
  { case: titles.express, ours: 'diana, four rules', theirs: 'bare', times: 1 / 0.95 },
]

/** Measures one subject: in this process, or as a server in a process of its own. */
export async function measure({ framework, inProcess }, subject) {
  if (inProcess) return await timeRequests(await inProcess[subject]())
  const server = await startServer(`frameworks/${framework}.mjs`, subject)
  try {
    const changes = !subject.startsWith('bare') || subject.endsWith('that change')
    await assertLimits(server.port, changes && !subject.endsWith('no headers'))
    return await underLoad(server, CONNECTIONS)
  } finally {
    await server.stop()
  }
}

/** That a limiter counts is part of what is measured. */
async function assertLimits(port, limited) {
  const left = async () => {
    const headers = { 'x-account-id': 'proof', 'x-device-id': 'proof' }
    const response = await fetch(`http://127.0.0.1:${port}/orders`, { headers })
    const told = [...response.headers].filter(([name]) => name.includes('ratelimit')).map(([, value]) => value)
    return `${response.status} ${told.join()}`
  }
  const [first, second] = [await left(), await left()]
  if (!first.startsWith('200')) throw new Error(`the server answers with ${first}`)
  if ((first !== second) !== limited)
    throw new Error(`it should ${limited ? '' : 'not '}count: ${first}, then ${second}`)
}
