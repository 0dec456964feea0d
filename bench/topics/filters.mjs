// Filters: what a framework keeps of its speed with a limiter in front of it. Server and load are processes of their own;
// they share the machine, so the CPU that the server spends on a call is compared first, and calls per second beside it.

import { startServer } from '../start-server.mjs'
import { underLoad } from '../under-load.mjs'

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
limiter that reports the state of the limits to callers, and so the floor of the targets below.

- express-rate-limit: its README's settings, \`draft-8\` headers and no legacy ones; four of them in a row for four limits: a refused call
  has already been charged by those before the one that refuses.
- @fastify/rate-limit: its README's settings; a request can have one limit only.
- hono-rate-limiter: \`draft-6\` headers, its default; koa-ratelimit: the memory driver of its README.
- @nestjs/throttler: its guard for the whole application, and four named throttlers for four limits.
`

export const cases = await Promise.all(
  frameworks.map(async framework => {
    const { subjects } = await import(`../frameworks/${framework}.mjs`)
    const rounds = marked.includes(framework) ? undefined : 1
    return { name: titles[framework], unit: 'CPU µs/call', framework, rounds, subjects: Object.keys(subjects) }
  }),
)

export const charted = cases.map(({ name }) => name)

// CPU per call is what bounds a server's throughput: 95 % of the one is 1 / 95 % of the other
const KEEPS = 0.95
export const marks = marked.flatMap(framework => {
  return ['diana, one rule', 'diana, four rules'].map(ours => {
    return { case: titles[framework], ours, theirs: 'bare', times: 1 / KEEPS }
  })
})

/** Measures one subject, a server in a process of its own. */
export async function measure({ framework }, subject) {
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
