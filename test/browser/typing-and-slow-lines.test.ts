import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildPage } from './built-page.ts'
import { call, openBrowser, openTab, type Running, runGateway } from './stage.ts'

/** `npm run long -- dashboard` types more, and makes more rules. */
const isLong = process.env.DIANA_DASHBOARD_LONG === '1'
const until = { timeout: 30_000 }
const manyRules = (count: number) =>
  Array.from({ length: count }, (_, index) => `  - { id: rule-${index}, match: { path: /${index} }, limit: 100/s }\n`)
const rules = `# written by hand\nrules:\n${manyRules(200).join('')}`

let browser: Browser
let built: string
let folder: string
let config: string
let diana: Running

beforeAll(async () => {
  built = await buildPage()
  browser = await openBrowser()
  folder = mkdtempSync(join(tmpdir(), 'diana-typing-'))
  config = join(folder, 'diana.yaml')
  writeFileSync(config, rules)
  diana = await runGateway({ config, page: built })
}, 60_000)

afterAll(async () => {
  await browser?.close()
  await diana?.close()
  rmSync(folder, { recursive: true })
})

const textOf = (page: Page) =>
  page.locator('.code .cm-content').evaluate(element => (element as HTMLElement).innerText.replaceAll('\u200b', ''))

describe('typing', () => {
  it('the editor loses no key and keeps the caret when keys come every 20 ms on a slow processor', async () => {
    const { page, problems, close } = await openTab(browser, `${diana.admin}/#/editor`)
    await page.locator('.code .cm-content').click(until)
    const session = await page.context().newCDPSession(page)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 6 })
    await page.keyboard.press('Control+Home')
    const typed = '# a limit of 20/s, then 3000/h for each account; '.repeat(isLong ? 20 : 2)
    // as a keyboard sends them, whether the page has handled the last one or not
    const sent: Promise<unknown>[] = []
    for (const key of typed) {
      sent.push(session.send('Input.dispatchKeyEvent', { type: 'char', text: key }))
      await new Promise(resolve => setTimeout(resolve, 20))
    }
    await Promise.all(sent)
    await session.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    await expect.poll(async () => (await textOf(page)).split('\n')[0], until).toBe(`${typed}# written by hand`)
    // what is checked and saved is what stands there
    await page.getByText('No mistakes').waitFor(until)
    await page.getByRole('button', { name: 'Review and save…' }).click(until)
    await page.getByRole('button', { name: 'Apply' }).click(until)
    await page.getByText('Applied.', { exact: true }).waitFor(until)
    expect(readFileSync(config, 'utf8')).toBe(`${typed}${rules}`)
    expect(problems).toEqual([])
    await close()
  })
})

describe('a slow line', () => {
  it('the page is live within 5 s at 400 kbit/s with 200 rules', async () => {
    for (let rule = 0; rule < 200; rule++) await call(`${diana.url}/${rule}`, 'ann')
    const context = await browser.newContext({ locale: 'en-GB' })
    const page = await context.newPage()
    const session = await context.newCDPSession(page)
    await session.send('Network.enable')
    const throughput = 400_000 / 8
    await session.send('Network.emulateNetworkConditions', {
      ...{ offline: false, latency: 100, downloadThroughput: throughput, uploadThroughput: throughput },
    })
    const openedAt = performance.now()
    await page.goto(diana.admin)
    await page.locator('.pulse[data-state=live]').waitFor(until)
    await page.getByText('200 of 200 rules').waitFor(until)
    expect(performance.now() - openedAt).toBeLessThan(5000)
    await context.close()
  })

  it('answers of the admin API are sent compressed, and not to clients that do not accept it', async () => {
    const sent = async (path: string, encoding: string) => {
      const answer = await fetch(`${diana.admin}/api/v1/${path}`, { headers: { 'accept-encoding': encoding } })
      const text = await answer.text()
      return [answer.headers.get('content-encoding'), answer.headers.get('vary'), text.length > 1000]
    }
    expect(await sent('rules', 'gzip, br')).toEqual(['gzip', 'Accept-Encoding', true])
    expect(await sent('rules', 'identity')).toEqual([null, 'Accept-Encoding', true])
    expect(await sent('rules', 'gzip;q=0')).toEqual([null, 'Accept-Encoding', true])
  })
})
