import { Agent, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Call } from '../../packages/limiter/src/call.ts'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { dimensions } from '../../packages/limiter/src/dimensions/index.ts'
import { resource } from '../../packages/limiter/src/dimensions/resource.ts'
import { type Guard, guards, type StartGuard } from './guards.ts'
import { type PathService, resources, startServices } from './services.ts'
import { knownTargets, randomTargets } from './targets.ts'

// `npm run long -- paths --count N --seed N` says more
const count = Number(process.env.DIANA_PATHS_COUNT ?? 30)
const seed = Number(process.env.DIANA_PATHS_SEED ?? 1)
const atOnce = 16
const timeout = 120_000 + count * 100

const rules = [
  { id: 'hello', match: { path: '/hello' }, limit: '60000000/s' },
  { id: 'admin', match: { path: '/admin/**' }, limit: '60000000/s' },
  { id: 'file', match: { path: '/dir/deep/**' }, limit: '60000000/s' },
]
const ruleOf: Readonly<Record<string, string>> = Object.fromEntries(resources.map((name, at) => [name, rules[at]!.id]))

interface Answer {
  readonly status: number
  readonly policies: string
  readonly body: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 16 })
let services: PathService[] = []

beforeAll(async () => {
  services = await startServices()
})

afterAll(async () => {
  agent.destroy()
  for (const service of services.reverse()) await service.close()
})

function call(port: number, path: string, id: string): Promise<Answer> {
  return new Promise(resolve => {
    const outgoing = request({ port, host: '127.0.0.1', agent, path, headers: { 'x-id': id } }, answer => {
      let body = ''
      answer.setEncoding('latin1').on('data', piece => {
        body += piece
      })
      const policies = String(answer.headers['ratelimit-policy'] ?? '')
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, policies, body }))
    })
    // a server may cut a connection that it does not like
    outgoing.on('error', () => resolve({ status: 0, policies: '', body: '' })).end()
  })
}

/** What a form of Diana missed: targets that reached a resource uncharged, or that `by: resource` counts as another one. */
async function search(start: StartGuard, service: PathService, targets: readonly string[]) {
  const counted = new Map<unknown, string | undefined>()
  const spy = {
    name: 'spy',
    argument: 'none' as const,
    read: (called: Call) => {
      const key = resource.ambiguityOf?.('')(called) ? 'refused' : resource.read(called, '')
      counted.set(called.headers?.['x-id'], key)
      return key
    },
  }
  const limiter = await createLimiter({
    rules: [...rules, { id: 'spied', by: 'spy', limit: '60000000/s' }],
    dimensions: [...dimensions, spy],
  })
  const guard: Guard = await start(limiter, service.port, agent)
  const missed: string[] = []
  let served = 0
  const ask = async (target: string, id: string): Promise<void> => {
    const { status, policies, body } = await call(guard.port, target, id)
    if (status !== 200) return
    served++
    const key = counted.get(id)
    if (!policies.includes(`"${ruleOf[body]}"`)) missed.push(`${target} reached ${body}, which was not charged`)
    // what is routed by its beginning is many resources
    else if (body === '/hello' && key !== body && key !== 'refused')
      missed.push(`${target} reached ${body}, but was counted as ${key}`)
  }
  try {
    for (let at = 0; at < targets.length; at += atOnce) {
      await Promise.all(targets.slice(at, at + atOnce).map((target, place) => ask(target, `${at + place}`)))
    }
  } finally {
    await guard.close()
    await limiter.close()
  }
  return { missed, served }
}

describe.each(Object.entries(guards))('what a service serves is what the %s judged', (_name, start) => {
  test('a service serves the path that was decided, in any spelling', { timeout }, async () => {
    const targets = [...knownTargets, ...randomTargets(count, seed)]
    const missed: Record<string, string[]> = {}
    for (const service of services) {
      const found = await search(start, service, targets)
      expect(found.served, service.name).toBeGreaterThan(0)
      if (found.missed.length > 0) missed[service.name] = found.missed
    }
    expect(missed, `seed ${seed}`).toEqual({})
  })
})
