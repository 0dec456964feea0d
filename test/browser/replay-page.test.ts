import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { run } from '../../packages/gateway/src/cli/run.ts'
import { openBrowser } from './stage.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let browser: Browser
let folder: string
let page: string

beforeAll(async () => {
  browser = await openBrowser()
  folder = mkdtempSync(join(tmpdir(), 'diana-replay-page-'))
  const [rules, log] = [join(folder, 'rules.yaml'), join(folder, 'access.log')]
  page = join(folder, 'report.html')
  writeFileSync(
    rules,
    'rules:\n  - { id: per-ip, by: ip, limit: 10/m }\n  - { id: agents, by: header:user-agent, limit: 5/s, whenFull: shadow }\n',
  )
  const lines = Array.from({ length: 3000 }, (_unused, i) => {
    const time = new Date(Date.UTC(2026, 10, 16, 8) + i * 200).toISOString()
    const clf = `${time.slice(8, 10)}/Nov/2026:${time.slice(11, 19)} +0000`
    return `203.0.113.${i % 3 === 0 ? 1 : i % 200} - - [${clf}] "GET /<b>${i % 7} HTTP/1.1" 200 1 "-" "<script>alert(1)</script>"`
  })
  writeFileSync(log, lines.join('\n'))
  const silent = { input: process.stdin, print: () => {}, printError: () => {} }
  expect(await run(['replay', rules, log, '--html', page, '--against', rules], silent)).toBe(0)
}, 60_000)

afterAll(async () => {
  await browser?.close()
  rmSync(folder, { recursive: true })
})

describe('the page of diana replay', () => {
  it.each([
    ['light', 1280],
    ['dark', 360],
  ] as const)(
    'in %s, %i pixels wide, it draws its plots, asks for nothing, and is accessible',
    async (colorScheme, width) => {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 }, bypassCSP: true })
      const tab = await context.newPage()
      const problems: string[] = []
      tab.on('console', message => ['error', 'warning'].includes(message.type()) && problems.push(message.text()))
      tab.on('pageerror', error => problems.push(String(error)))
      tab.on('request', request => !request.url().startsWith('file:') && problems.push(request.url()))
      await tab.goto(`file://${page}`)
      expect(await tab.locator('svg.plot').count()).toBeGreaterThanOrEqual(7)
      expect(await tab.locator('svg.plot rect').count()).toBeGreaterThan(20)
      const box = await tab.locator('svg.plot').first().boundingBox()
      expect(box!.width).toBeGreaterThan(200)
      // nothing but tables, which scroll by themselves, is wider than the screen
      expect(await tab.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width)
      await tab.locator('details').first().locator('summary').click()
      expect(await tab.locator('details[open] svg').count()).toBe(1)
      await tab.evaluate(axe)
      const result = (await tab.evaluate('axe.run()')) as { violations: { id: string; nodes: { html: string }[] }[] }
      expect(result.violations.map(({ id, nodes }) => [id, nodes[0]?.html])).toEqual([])
      expect(problems).toEqual([])
      await context.close()
    },
  )

  it('texts of logs and rules stay texts', () => {
    const html = readFileSync(page, 'utf8')
    expect(html).not.toContain('<script>')
    expect(html).toContain('&lt;script&gt;')
    expect(statSync(page).size).toBeLessThan(200_000)
  })
})
