import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** An example that serves: where, and how it ends. */
interface Serving {
  readonly url: string
  close(): Promise<unknown>
}

beforeEach(() => {
  vi.stubEnv('PORT', '0')
  vi.spyOn(console, 'log').mockImplementation(() => {})
})

afterEach(() => {
  vi.unstubAllEnvs()
  vi.restoreAllMocks()
})

/** The statuses of calls, until one is refused. */
async function callUntilRefused(url: string): Promise<number[]> {
  const statuses: number[] = []
  while (statuses.length < 20) {
    const { status, headers } = await fetch(url)
    statuses.push(status)
    if (status === 503 || status === 429) {
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      return statuses
    }
  }
  return statuses
}

const five = [200, 200, 200, 200, 200, 503]
const serving: Record<string, [file: string, statuses: number[]]> = {
  http: ['server.mjs', five],
  express: ['server.mjs', [401, 401, 401, 429]],
  fastify: ['server.mjs', [200, 200, 200, 503]],
  koa: ['server.mjs', [200, 200, 200, 503]],
  hono: ['server.mjs', five],
  fetch: ['server.mjs', [200, 200, 200, 200, 200, 429]],
  nest: ['server.ts', [200, 200, 200, 200, 200, 429]],
  gateway: ['server.mjs', five],
}

/** Those with a test of their own. */
const elsewhere = ['graphql', 'llm', 'recipes']

describe('the examples', () => {
  it('every example is run by this test or one of its own', () => {
    const folders = readdirSync(`${root}examples`, { withFileTypes: true }).filter(entry => entry.isDirectory())
    expect(folders.map(({ name }) => name).sort()).toEqual(
      [...Object.keys(serving), 'job', 'decorator', ...elsewhere].sort(),
    )
  })

  it.each(Object.entries(serving))(
    'the example %s serves until its limit is reached',
    async (name, [file, statuses]) => {
      const path = `../examples/${name}/${file}`
      const example = (await import(/* @vite-ignore */ path)) as Serving
      try {
        expect(await callUntilRefused(example.url)).toEqual(statuses)
      } finally {
        await example.close()
      }
    },
  )

  it('the example job keeps its pace', async () => {
    const path = '../examples/job/main.mjs'
    const { tookMs } = (await import(path)) as { tookMs: number }
    // the fifth message goes 4/20 s after the first, and timers may be a millisecond early
    expect(tookMs).toBeGreaterThan(195)
  })

  it('the example decorator sends at most two messages to each receiver', async () => {
    // the runner of the tests has no decorators of the standard's kind
    const compiler = `${root}node_modules/.bin/tsc`
    await promisify(execFile)(compiler, ['-p', `${root}examples/decorator`, '--noCheck'])
    const path = '../examples/decorator/dist/main.js'
    const { sent } = (await import(path)) as { sent: string[] }
    expect(sent).toEqual(['ann: hello', 'ann: are you there?', 'bob: hello'])
  })
})
