import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFakeAdmin } from '../../packages/dashboard/fake-admin/fake-admin.ts'
import { readPage } from '../../packages/gateway/src/admin/server/page.ts'
import { buildPage } from './built-page.ts'
import { call, listen, openBrowser, openTab, type Running, runGateway } from './stage.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const views = ['now', 'rules', 'rules/hello', 'callers', 'refusals', 'fleet', 'services', 'explain', 'editor']
const until = { timeout: 15_000 }

let browser: Browser
let built: string
let folder: string
let diana: Running

beforeAll(async () => {
  built = await buildPage()
  browser = await openBrowser()
  folder = mkdtempSync(join(tmpdir(), 'diana-accessibility-'))
  const config = join(folder, 'diana.yaml')
  writeFileSync(
    config,
    'overload: {}\nrules:\n  - { id: hello, by: ip, limit: 5/m }\n  - { id: perhaps, limit: 2/m, whenFull: shadow }\n' +
      '  - { id: backend, algorithm: adaptive, limit: 20 }\n',
  )
  diana = await runGateway({ config, page: built })
  await callUntilListed()
}, 60_000)

afterAll(async () => {
  await browser?.close()
  await diana?.close()
  rmSync(folder, { recursive: true })
})

/** Calls until a caller is refused by the rule: calls that a busy machine sheds are refused, too, but by no rule. */
async function callUntilListed(): Promise<void> {
  for (;;) {
    await call(`${diana.url}/hello`, 'ann', 8)
    const answer = await fetch(`${diana.admin}/api/v1/callers`)
    const { callers } = (await answer.json()) as { callers: unknown[] }
    if (callers.length > 0) return
  }
}

/** What a view shows once it has its answers. */
async function settle(page: Page, view: string): Promise<void> {
  await page.goto(`${diana.admin}/#/${view}`)
  await page.locator('.pulse[data-state=live]').waitFor(until)
  const signs: Record<string, string> = {
    now: '.overload [data-level]',
    callers: '.callers',
    refusals: '.refusals',
    services: '.services [data-address]',
    editor: '.cm-content',
  }
  await page
    .locator(signs[view] ?? 'main .panel')
    .first()
    .waitFor(until)
}

/** The page on the double of the admin API. */
function serveDouble(crowd: number): Server {
  const files = readPage(built)
  const double = createFakeAdmin({ crowd })
  return createServer((request, response) =>
    double(request, response, () => {
      const file = files.get(request.url ?? '/')
      response.writeHead(file ? 200 : 404, { 'content-type': file?.type ?? 'text/plain' }).end(file?.body)
    }),
  )
}

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

describe('accessibility', () => {
  it.each(['light', 'dark'] as const)('axe finds nothing serious in any view, %s', async colorScheme => {
    const { page, problems, close } = await openTab(browser, diana.admin, { colorScheme })
    for (const view of views) {
      await settle(page, view)
      await page.evaluate(axe)
      const found = await page.evaluate<{ violations: Violation[] }>('axe.run()')
      const grave = found.violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
      expect(grave.map(({ id, nodes }) => ({ view, id, at: nodes.map(({ html }) => html) }))).toEqual([])
    }
    expect(problems).toEqual([])
    await close()
  })

  it('every view is reachable by keyboard, and marks the current one', async () => {
    const { page, close } = await openTab(browser, diana.admin)
    await page.locator('.pulse[data-state=live]').waitFor(until)
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content')
    for (let press = 0; press < 3; press++) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.title(), until).toBe('Rules · Diana')
    expect(await page.locator('nav [aria-current=page]').textContent()).toBe('Rules')
    await close()
  })

  it('no view is wider than the screen of a phone', async () => {
    const { page, close } = await openTab(browser, diana.admin, { viewport: { width: 360, height: 740 } })
    for (const view of views) {
      await settle(page, view)
      const wide = await page.evaluate(() => document.documentElement.scrollWidth)
      expect([view, wide]).toEqual([view, 360])
    }
    await close()
  })
})

describe('language and colors', () => {
  it('language and colors follow the browser, and a choice is kept', async () => {
    const { page, problems, close } = await openTab(browser, diana.admin, { locale: 'zh-CN', colorScheme: 'dark' })
    await page.getByRole('link', { name: '规则' }).click(until)
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('zh-CN')
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    const dark = await paper()
    await page.getByLabel('配色').selectOption('light')
    expect(await paper()).not.toBe(dark)
    await page.getByLabel('语言').selectOption('en')
    await page.reload()
    await page.getByRole('heading', { name: 'Rules' }).waitFor(until)
    expect(await paper()).not.toBe(dark)
    expect(problems).toEqual([])
    await close()
  })

  it.each(views)('nothing is left in English on the Chinese view %s', async view => {
    const { page, close } = await openTab(browser, diana.admin, { locale: 'zh-CN' })
    await settle(page, view)
    // the words of the rule file are the same in every language
    const text = await page.locator('main :is(h1, h2, p, button, dt, .head, .badge, th, label)').allInnerTexts()
    expect(text.join('\n').match(/\b(?:the|and|of|calls?|rules?|limit|refused|passed|no|per)\b(?!-)/gi) ?? []).toEqual(
      [],
    )
    await close()
  })
})

describe('the token', () => {
  it('the page asks for the token once, reports wrong ones, and keeps it in the tab', async () => {
    const token = 'a-token-for-the-test-0123'
    const guarded = await runGateway({ config: join(folder, 'diana.yaml'), page: built, token })
    const { page, close } = await openTab(browser, guarded.admin)
    await page.getByLabel('Token').fill('not-the-token-of-the-test', until)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The token is wrong.').waitFor(until)
    // the same once more
    await page.getByLabel('Token').fill('not-the-token-of-the-test', until)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('The token is wrong.').waitFor(until)
    await page.getByLabel('Token').fill(token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('.pulse[data-state=live]').waitFor(until)
    await page.reload()
    await page.locator('.pulse[data-state=live]').waitFor(until)
    expect(await page.context().cookies()).toEqual([])
    await close()
    await guarded.close()
  })
})

describe('blocking', () => {
  it('a caller is blocked, listed, and unblocked on the page', async () => {
    const server = serveDouble(0)
    const { page, problems, close } = await openTab(browser, `${await listen(server)}/#/callers`)
    const first = page.locator('.callers .rows [role=row]').first()
    await first.getByRole('button', { name: 'Block…' }).click(until)
    await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click(until)
    await page.locator('.said').getByText('is blocked.').waitFor(until)
    await page.locator('.blocks tbody tr').getByText('caller-0').waitFor(until)
    await page.getByRole('button', { name: 'Unblock' }).click()
    await page.getByText('No caller is blocked.').waitFor(until)
    await first.getByRole('button', { name: 'Reset' }).click()
    await page.getByText('is reset.').waitFor(until)
    expect(problems).toEqual([])
    await close()
    server.closeAllConnections()
    server.close()
  })
})

describe('size and speed', () => {
  it('the first paint needs at most 60 kB', () => {
    const html = readFileSync(join(built, 'index.html'), 'utf8')
    const files = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(match => match[1]!)
    expect(files.length).toBeGreaterThan(1)
    const bytes = [html, ...files.map(name => readFileSync(join(built, name)))].map(text => gzipSync(text).length)
    expect(bytes.reduce((sum, length) => sum + length, 0)).toBeLessThan(60_000)
    // the editor is there, and only its view asks for it
    expect(readdirSync(join(built, 'assets')).filter(name => name.startsWith('editor'))).toHaveLength(1)
    expect(files.filter(name => name.includes('editor'))).toEqual([])
  })

  it('the page is sent compressed to browsers that accept it', async () => {
    const sent = async (encoding: string) => {
      const { headers } = await fetch(diana.admin, { headers: { 'accept-encoding': encoding } })
      return [headers.get('content-encoding'), headers.get('vary')]
    }
    expect(await sent('br, gzip')).toEqual(['gzip', 'Accept-Encoding'])
    expect(await sent('identity')).toEqual([null, 'Accept-Encoding'])
    expect(await sent('gzip;q=0')).toEqual([null, 'Accept-Encoding'])
  })

  it('the page has no inline scripts and styles', () => {
    const html = readFileSync(join(built, 'index.html'), 'utf8')
    expect(html).not.toMatch(/<style|style=|\son\w+=|<script(?![^>]*\ssrc=)/)
  })

  it('the page scrolls at 60 frames a second with ten thousand busy rules, and leaves the processor to others', async () => {
    const server = serveDouble(10_000)
    const { page, problems, close } = await openTab(browser, `${await listen(server)}/#/now?scope=gateway`)
    await page.getByText('10,000 of 10,000 rules').waitFor(until)
    expect(await page.getByRole('table', { name: 'By rule' }).getAttribute('aria-rowcount')).toBe('10001')
    expect(await page.getByRole('row').count()).toBeLessThan(60)
    // the page's own work, in time of the processor, whatever else the machine does
    const session = await page.context().newCDPSession(page)
    await session.send('Performance.enable', { timeDomain: 'threadTicks' })
    const worked = async () => {
      const { metrics } = await session.send('Performance.getMetrics')
      return metrics.find(({ name }) => name === 'TaskDuration')!.value
    }
    const seconds = 4
    const idle = await worked()
    await page.waitForTimeout(seconds * 1000)
    const share = ((await worked()) - idle) / seconds
    const before = await worked()
    const frames = await page.evaluate(async () => {
      const list = document.querySelector('.scrolls')!
      let count = 0
      for (const end = performance.now() + 2000; performance.now() < end; list.scrollTop += 20) {
        await new Promise(requestAnimationFrame)
        count++
      }
      return count
    })
    const perFrame = (((await worked()) - before) / frames) * 1000
    expect(frames).toBeGreaterThan(10)
    expect([share, perFrame].map(number => number > 0)).toEqual([true, true])
    expect({ share, perFrame }).toEqual({
      share: expect.toSatisfy((n: number) => n < 0.15),
      perFrame: expect.toSatisfy((n: number) => n < 1000 / 60),
    })
    await expect.poll(() => page.locator('.rows .rule').first().textContent(), until).not.toBe('rule-0000')
    expect(problems).toEqual([])
    await close()
    server.closeAllConnections()
    server.close()
  }, 60_000)
})
