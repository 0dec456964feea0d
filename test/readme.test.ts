import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { afterAll, describe, expect, it } from 'vitest'
import { run } from '../packages/gateway/src/cli/run.ts'
import { rateLimit } from '../packages/limiter/src/filters/express.ts'
import { published } from '../scripts/release/pack.mjs'
import { listen } from './helpers/filters/listen.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'diana-readme-'))
afterAll(() => rmSync(folder, { recursive: true }))

const read = (page: string): string => readFileSync(join(root, page), 'utf8')
const blockOf = (page: string, begin: RegExp): string => {
  const found = [...read(page).matchAll(/^```.*\n([\s\S]*?)^```$/gm)].map(match => match[1]!)
  return found.find(text => begin.test(text))!
}

/** The rate-limit headers, the type and the body of the answer to the 101st request, as the READMEs show it. */
async function refusal(): Promise<string> {
  const limit = rateLimit({ limit: '100/m', status: 429, clock: () => 1_700_000_000_000 })
  const server = await listen(createServer(express().use(limit, (_request, response) => void response.send(''))))
  const ask = async (): Promise<IncomingMessage> => {
    const [answer] = (await once(request({ port: server.port, host: '127.0.0.1' }).end(), 'response')) as [
      IncomingMessage,
    ]
    return answer
  }
  for (let call = 0; call < 100; call++) (await ask()).resume()
  const answer = await ask()
  let body = ''
  for await (const piece of answer.setEncoding('utf8')) body += piece
  await server.close()
  await limit.close()
  const names = ['RateLimit-Policy', 'RateLimit', 'Retry-After', 'Cache-Control', 'Content-Type']
  const lines = names.map(name => `${name}: ${answer.headers[name.toLowerCase()]}\n`).join('')
  return `HTTP/1.1 ${answer.statusCode} ${answer.statusMessage}\n${lines}\n${body}\n`
}

describe.each(['README.md', 'README.zh-CN.md', 'packages/limiter/README.md'])('%s', page => {
  it('the page shows the answer that a refused caller gets', async () => {
    // the body is folded
    const shown = blockOf(page, /^HTTP\/1\.1 429/).replace(/\n {1}(?=\S)/g, '')
    expect(shown).toBe(await refusal())
  })
})

it.each(['README.md', 'README.zh-CN.md'])(
  '%s shows what diana explain prints for the rules that it shows',
  async page => {
    const rules = join(folder, 'diana.yaml')
    writeFileSync(rules, blockOf(page, /^identify:/))
    const [, shown] = /(\$ npx diana explain [\s\S]*)/.exec(blockOf(page, /npx diana explain/))!
    const [command, ...lines] = shown!.split('\n')
    const words = command!.replace('$ npx diana ', '').replace('diana.yaml', rules)
    const args = [...words.matchAll(/'([^']*)'|(\S+)/g)].map(match => match[1] ?? match[2]!)
    const printed: string[] = []
    const print = (line: string): void => void printed.push(...line.split('\n'))
    expect(await run(args, { input: (async function* () {})(), print, printError: print })).toBe(0)
    const end = lines.indexOf('…')
    expect(end).toBeGreaterThan(5)
    expect(printed.slice(0, end)).toEqual(lines.slice(0, end))
  },
)

it.each(published)('the README of %s links to nothing that is not packed with it', place => {
  const links = [...read(`${place}/README.md`).matchAll(/\]\(([^)\s]+)\)/g)].map(match => match[1]!)
  expect(links.filter(link => !link.startsWith('#'))).toEqual([])
})
