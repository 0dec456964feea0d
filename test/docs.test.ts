import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it, vi } from 'vitest'
import { algorithms } from '../packages/limiter/src/algorithms/index.ts'
import { dimensions } from '../packages/limiter/src/dimensions/index.ts'
import { formatMistake } from '../packages/limiter/src/rules/mistake.ts'
import { parseText } from '../packages/limiter/src/rules/parse-text.ts'
import { sources } from '../packages/limiter/src/sources/index.ts'
import { published } from '../scripts/release/pack.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const vocabulary = { algorithms, dimensions, sources }

interface Block {
  readonly page: string
  readonly line: number
  /** What stands behind the three ticks. */
  readonly kind: string
  readonly text: string
}

function pagesIn(folder: string): string[] {
  const names = readdirSync(join(root, folder)).filter(name => name.endsWith('.md'))
  return names.map(name => join(folder, name)).sort()
}

function read(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

function blocksOf(page: string): Block[] {
  const text = read(page)
  return [...text.matchAll(/^```(.*)\n([\s\S]*?)^```$/gm)].map(({ index, 1: kind, 2: block }) => {
    return { page, line: text.slice(0, index).split('\n').length, kind: kind!, text: block! }
  })
}

/** The targets of a page's links and pictures that are files of this repository. */
function linksOf(page: string): string[] {
  const prose = read(page)
    .replace(/^```[\s\S]*?^```$/gm, '')
    .replace(/`[^`\n]*`/g, '')
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(match => match[1]!)
  return targets.filter(target => !/^(?:[a-z]+:|#)/.test(target)).map(target => target.split('#')[0]!)
}

const docs = pagesIn('docs')
const atTop = pagesIn('.').filter(page => /^(?:README.*|ARCHITECTURE|CONTRIBUTING|SECURITY)\.md$/.test(page))
const packageReadmes = published.map(folder => join(folder, 'README.md'))
const readmes = [...atTop.filter(page => page.startsWith('README')), ...packageReadmes]
const blocks = [...readmes, ...docs].flatMap(blocksOf)
const ruleFiles = blocks.filter(({ kind, text }) => kind === 'yaml' && /^rules:/m.test(text))

describe('the rule files in the docs', () => {
  it('the docs have enough examples and links for this test', () => {
    expect(ruleFiles.length).toBeGreaterThan(10)
  })

  it.each(ruleFiles.map(block => [`${block.page}:${block.line}`, block] as const))(
    '%s has no mistake',
    (name, block) => {
      expect(parseText(block.text, name, vocabulary).mistakes.map(formatMistake)).toEqual([])
    },
  )

  it('every example of docs/rules.md is a whole rule file', () => {
    const examples = blocks.filter(({ page, kind }) => page === 'docs/rules.md' && kind.startsWith('yaml'))
    expect(examples.filter(({ text }) => !/^rules:/m.test(text))).toEqual([])
  })

  it('diana check reports mistakes as docs/rules.md shows them', () => {
    const page = blocks.filter(block => block.page === 'docs/rules.md')
    const bad = page.findIndex(({ kind }) => kind === 'yaml mistakes')
    const [command, ...told] = page[bad + 1]!.text.trimEnd().split('\n')
    expect(command).toBe('$ npx diana check bad.yaml')
    expect(parseText(page[bad]!.text, 'bad.yaml', vocabulary).mistakes.map(formatMistake)).toEqual(told)
  })
})

describe('the links in the docs', () => {
  const pages = [...atTop, ...packageReadmes, ...docs]

  it('the docs have enough examples and links for this test', () => {
    expect(pages.flatMap(linksOf).length).toBeGreaterThan(10)
  })

  it.each(pages)('%s points to files that exist', page => {
    const lost = linksOf(page).filter(target => !existsSync(resolve(root, dirname(page), target)))
    expect(lost).toEqual([])
  })
})

describe('the programs in docs/filters.md', () => {
  const programs = readdirSync(join(root, 'test/docs/filters'))
  const shown = blocks.filter(({ page, kind }) => page === 'docs/filters.md' && /^[jt]s$/.test(kind))

  it.each(programs)('docs/filters.md shows %s as it runs here', name => {
    expect(shown.map(({ text }) => text)).toContain(read(`test/docs/filters/${name}`))
  })

  it('the program in the README of diana-limiter is the one of docs/filters.md for Express', () => {
    const [program] = blocksOf('packages/limiter/README.md').filter(({ kind }) => kind === 'js')
    expect(program!.text).toBe(read('test/docs/filters/express.mjs'))
  })

  it.each(programs)('%s refuses the third call', async name => {
    const path = `./docs/filters/${name}`
    const { server, app } = (await import(/* @vite-ignore */ path)) as { server?: Server; app?: unknown }
    const listening = server ?? createServer(listenerOf(app))
    if (app instanceof Object && 'ready' in app) await (app as { ready(): Promise<unknown> }).ready()
    listening.listen(0, '127.0.0.1')
    await once(listening, 'listening')
    const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
    const answers = [await fetch(`${url}/hello`), await fetch(`${url}/hello`), await fetch(`${url}/hello`)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 503])
    expect(answers[0]!.headers.get('ratelimit')).toMatch(/^"per-address";r=1;t=\d+$/)
    expect(Number(answers[2]!.headers.get('retry-after'))).toBeGreaterThan(0)
    listening.closeAllConnections()
    listening.close()
    await once(listening, 'close')
  })
})

/** What an application of any framework gives to Node's server. */
function listenerOf(app: unknown): RequestListener {
  if (typeof app === 'function') return app as RequestListener
  if (app instanceof Hono) return getRequestListener(app.fetch)
  if (app instanceof Koa) return app.callback()
  const { routing } = app as { routing: RequestListener }
  return routing
}

describe('the programs in docs/library.md and docs/extending.md', () => {
  const programs = readdirSync(join(root, 'test/docs')).filter(name => name.endsWith('.ts'))

  it.each(programs)('the docs show test/docs/%s as it runs here', name => {
    const shown = blocks.filter(({ page, kind }) => /library|extending/.test(page) && kind === 'ts')
    expect(shown.map(({ text }) => text)).toContain(read(`test/docs/${name}`))
  })

  it('the algorithm of the docs counts days that begin at midnight in another time zone', async () => {
    const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
    const { localDay } = await import('./docs/own-algorithm.ts')
    expect(printed.mock.calls).toEqual([[true, 9]])
    printed.mockRestore()

    const meter = localDay.meter({ count: 2, periodMs: 86_400_000 }, { utcOffset: 8 })
    const state = new Float64Array(meter.slots)
    const hourUs = 3_600_000_000
    const midnightInShanghai = Date.UTC(2026, 0, 1, 16) * 1000
    const at = (now: number, cost: number) => {
      const delay = meter.delay(state, 0, now, cost)
      if (delay === 0) meter.take(state, 0, now, cost, 0)
      return [delay, meter.remaining(state, 0, now)]
    }
    expect(at(midnightInShanghai - 2 * hourUs, 3)).toEqual([Number.POSITIVE_INFINITY, 2])
    expect(at(midnightInShanghai - 2 * hourUs, 2)).toEqual([0, 0])
    expect(at(midnightInShanghai - hourUs, 1)).toEqual([hourUs, 0])
    expect(at(midnightInShanghai - hourUs, 0)).toEqual([0, 0])
    expect(meter.idleAt(state, 0)).toBe(midnightInShanghai)
    expect(at(midnightInShanghai, 1)).toEqual([0, 1])
    meter.refund(state, 0, midnightInShanghai, 1, midnightInShanghai - hourUs)
    expect(meter.remaining(state, 0, midnightInShanghai)).toBe(1)
    meter.refund(state, 0, midnightInShanghai, 1, midnightInShanghai)
    expect(meter.remaining(state, 0, midnightInShanghai)).toBe(2)
    expect(() => localDay.meter({ count: 2, periodMs: 1000 }, {})).toThrow('whole days')
  })

  it('the dimension of the docs distinguishes tenants', async () => {
    const printed = vi.spyOn(console, 'log').mockImplementation(() => {})
    await import('./docs/own-dimension.ts')
    expect(printed.mock.calls.map(([, allowed]) => allowed)).toEqual([true, true, false, true])
    printed.mockRestore()
  })

  it('the server without a filter refuses the third call', async () => {
    const { server } = await import('./docs/without-filter.ts')
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hello`
    const answers = [await fetch(url), await fetch(url), await fetch(url)]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 503])
    expect(answers[2]!.headers.get('retry-after')).toBe('3600')
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })
})
