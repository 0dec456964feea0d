import { Agent, request } from 'node:http'
import { afterAll, describe, expect, test } from 'vitest'
import { createLimiter } from '../../packages/limiter/src/create/create-limiter.ts'
import { type RoutedApplication, routedApplications, routedResources } from './routers.ts'
import { knownTargets, randomTargets } from './targets.ts'

// `npm run long -- paths --count N --seed N` says more
const isLong = process.env.DIANA_PATHS_COUNT !== undefined
const count = Number(process.env.DIANA_PATHS_COUNT ?? 20)
const seed = Number(process.env.DIANA_PATHS_SEED ?? 1)
const atOnce = 16
const timeout = 60_000 + count * 100

const agent = new Agent({ keepAlive: true, maxSockets: 16 })

afterAll(() => agent.destroy())

/** Each resource with its rules; a rule may be written with letters or with escapes. */
const rulesOf: Readonly<Record<string, readonly string[]>> = {
  '/hello': ['/hello', '/h%65llo'],
  '/admin/secret': ['/admin/**'],
  '/dir/deep/file': ['/dir/deep/**', '/dir/:name/file'],
  '/auth/login': ['/auth/login', '/auth/*'],
  '/big sale': ['/big%20sale', '/big%20s*'],
  '/café/menu': ['/café/menu', '/caf%C3%A9/menu', '/caf%c3%a9/*'],
  '/key/7': ['/key/*', '/key/7'],
}

interface Answer {
  readonly status: number
  readonly policies: readonly string[]
  readonly body: string
}

function call(port: number, path: string): Promise<Answer> {
  return new Promise(resolve => {
    const outgoing = request({ port, host: '127.0.0.1', agent, path }, answer => {
      let body = ''
      answer.setEncoding('utf8').on('data', piece => {
        body += piece
      })
      const policies = [...String(answer.headers['ratelimit-policy'] ?? '').matchAll(/"([^"]+)"/g)].map(([, id]) => id!)
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, policies, body }))
    })
    outgoing.on('error', () => resolve({ status: 0, policies: [], body: '' })).end()
  })
}

interface Found {
  /** Requests whose handler ran although a rule about it did not count them. */
  readonly bypassed: string[]
  /** Requests that a rule about one path counted although its handler did not run. */
  readonly overcounted: string[]
  served: number
}

const idOf = (resource: string, at: number): string => `r${routedResources.indexOf(resource)}-${at}`

/** True if a rule is about more paths than one. */
function isBroad(id: string): boolean {
  const [resource, at] = id.slice(1).split('-').map(Number)
  return /[*:]/.test(rulesOf[routedResources[resource!]!]![at!]!)
}

/** Sends targets to an application, and compares what it serves with what the rules have counted. */
async function compare({ prefix = '', start }: RoutedApplication, targets: readonly string[]): Promise<Found> {
  const rules = routedResources.flatMap(resource =>
    rulesOf[resource]!.map((path, at) => ({
      id: idOf(resource, at),
      match: { path: prefix + path },
      limit: '60000000/s',
    })),
  )
  const limiter = await createLimiter({ rules })
  const server = await start(limiter)
  const found: Found = { bypassed: [], overcounted: [], served: 0 }
  const ask = async (target: string): Promise<void> => {
    const { status, policies, body } = await call(server.port, target)
    const isServed = status === 200 && body in rulesOf
    const own = isServed ? rulesOf[body]!.map((_path, at) => idOf(body, at)) : []
    if (isServed) found.served++
    // a handler of `/key/:id` and `/admin/*` serves more than the path of one rule
    const due = own.filter(id => id !== idOf('/key/7', 1))
    const missing = due.filter(id => !policies.includes(id))
    if (missing.length > 0) found.bypassed.push(`${JSON.stringify(target)} reached ${body} without ${missing.join()}`)
    if (policies.some(id => !own.includes(id) && !isBroad(id))) found.overcounted.push(target)
  }
  try {
    for (let at = 0; at < targets.length; at += atOnce) await Promise.all(targets.slice(at, at + atOnce).map(ask))
  } finally {
    await server.close()
    await limiter.close()
  }
  return found
}

function targetsFor({ prefix = '', rewritten = '' }: RoutedApplication, place: number): string[] {
  const paths = routedResources.map(resource => prefix + resource)
  // the middleware that takes a version away is mounted below the prefix, or before it
  const versions = rewritten === '' ? paths : [...paths, ...paths.flatMap(path => versionsOf(path, prefix, rewritten))]
  // in a short run, each application gets some of the known spellings
  const known = isLong ? knownTargets : knownTargets.filter((_target, at) => at % 4 === place % 4)
  return [...known, ...versions.map(path => encodeURI(path)), ...randomTargets(count, seed + place, versions)]
}

const versionsOf = (path: string, prefix: string, rewritten: string): string[] => [
  rewritten + path,
  prefix + rewritten + path.slice(prefix.length),
]

/** A path that no two routers read differently. */
const isPlain = (target: string): boolean => /^(?:\/[a-z0-9]+)+$/.test(target)

const totals = { applications: 0, sent: 0, served: 0, overcounted: 0 }

afterAll(() => {
  if (!isLong) return
  const { applications, sent, served, overcounted } = totals
  console.log(
    `${applications} applications, ${sent} requests, ${served} served, ${overcounted} counted by another rule besides`,
  )
})

describe.each(Object.entries(routedApplications))('%s', (name, application) => {
  test('a handler never runs without being counted by the rules about its path', { timeout }, async () => {
    const targets = targetsFor(application, Object.keys(routedApplications).indexOf(name))
    const { bypassed, overcounted, served } = await compare(application, targets)
    totals.applications++
    totals.sent += targets.length
    totals.served += served
    totals.overcounted += overcounted.length
    expect(served).toBeGreaterThan(5)
    expect(bypassed, `seed ${seed}`).toEqual([])
    expect(overcounted.filter(isPlain)).toEqual([])
  })
})
