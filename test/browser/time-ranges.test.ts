import { createLimiter, type Limiter } from 'diana-limiter'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { historyLevels } from '../../packages/limiter/src/stats/history/history-levels.ts'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'
import { call, openStage, openTab, type Running, type Stage, textOf, until } from './stage.ts'

const numberOf = async (locator: Locator) => Number((await locator.textContent())?.replaceAll(',', ''))

let stage: Stage
let server: RedisServer
let diana: Running
let other: Limiter
let page: Page
let problems: string[]

/** Two processes with a hundred calls a second, a quarter more than before; one of them refuses one call in ten. */
async function writeHistory(): Promise<void> {
  const now = Date.now()
  for (const [level, { stepMs, frames }] of historyLevels.entries()) {
    const commands = server.client.pipeline()
    for (let ago = 1; ago < frames; ago++) {
      const at = (Math.floor(now / stepMs) - ago) * stepMs
      const half = ago <= frames / 2 ? 50 : 40
      const calls = (half * stepMs) / 1000
      const counts = (allowed: number, refused: number) => `${allowed} ${refused} 0 0`
      commands.hset(`diana:d1:history:${stepMs}:${at / 1000}`, {
        t: counts(2 * calls - calls / 10, calls / 10),
        rorders: counts(calls - calls / 10, calls / 10),
        rsearch: counts(calls, 0),
        'pweb-1:7': counts(calls - calls / 10, calls / 10),
        'pweb-2:9': counts(calls, 0),
      })
    }
    await commands.exec()
    expect(
      await server.client.exists(`diana:d1:history:${stepMs}:${Math.floor(now / stepMs - 2) * (stepMs / 1000)}`),
    ).toBe(1)
    expect(level).toBeLessThan(3)
  }
}

beforeAll(async () => {
  server = await startRedis()
  await writeHistory()
  const store = `redis://${server.authority}`
  const rules = `store: { redis: ${store} }\nrules:\n  - { id: orders, limit: 1000/s }\n  - { id: search, limit: 1000/s }\n`
  other = await createLimiter({ store: { redis: store }, rules: [{ id: 'orders', limit: '1000/s' }] })
  stage = await openStage(rules)
  ;({ diana } = stage)
  ;({ page, problems } = await openTab(stage.browser, `${diana.admin}/#/now`))
}, 60_000)

afterAll(async () => {
  await stage?.close()
  await other?.close()
  await server?.close()
})

const link = (name: string) => page.getByRole('link', { name, exact: true })

describe('the time that is shown', () => {
  it('a fleet is shown as a whole, with each range and the time before it, and every process on demand', async () => {
    await page.getByText('the whole fleet (2 processes)').waitFor({ state: 'attached', ...until })
    await link('24 hours').click()
    await textOf(page.locator('.panel-head').first()).toContain('averages of 5 min')
    // a day of 95 calls a second
    await expect.poll(() => numberOf(page.locator('[data-sum=allowed]')), until).toBe(95 * 86_400)
    await textOf(page.locator('[data-change=allowed]')).toMatch(/\+\d+% against the time before|^$/)
    const orders = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'orders' }) })
    await textOf(orders.locator('[data-large=refused]')).toBe('432K')
    await textOf(page.locator('.by-rule .rows .rule').first()).toBe('orders')

    await link('7 days').click()
    await textOf(page.locator('.panel-head').first()).toContain('averages of 30 min')
    await expect.poll(() => numberOf(page.locator('[data-sum=allowed]')), until).toBe(95 * 604_800)
    await textOf(page.locator('[data-change=allowed]')).toBe('+25% against the time before')

    await page.getByLabel('Processes').selectOption('web-1:7')
    await expect.poll(() => numberOf(page.locator('[data-sum=allowed]')), until).toBe(45 * 604_800)
    await page.getByLabel('Processes').selectOption('this gateway')
    await expect.poll(() => numberOf(page.locator('[data-sum=allowed]')), until).toBe(0)
    expect(problems).toEqual([])
  })

  it('the chart shows the numbers under the pointer and the keys, and a marked part of it closer', async () => {
    await page.goto(`${diana.admin}/#/now?range=24h`)
    const chart = page.getByRole('group', { name: /Calls per second/ })
    await page.getByText('averages of 5 min').waitFor(until)
    const box = (await chart.boundingBox())!
    await page.mouse.move(box.x + box.width / 2, box.y + 100)
    await textOf(page.locator('.readout')).toMatch(/allowed 95.*refused 5.*the time before: \d+ \/ \d/)
    await chart.focus()
    const before = await page.locator('.readout').textContent()
    await page.keyboard.press('ArrowLeft')
    await expect.poll(() => page.locator('.readout').textContent()).not.toBe(before)
    // an hour of yesterday is known in steps of five minutes
    await page.mouse.move(box.x + box.width / 2, box.y + 100)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width / 2 + 60, box.y + 100, { steps: 5 })
    await page.mouse.up()
    await link('Whole time').waitFor(until)
    const shown = new URLSearchParams(new URL(page.url()).hash.split('?')[1])
    const hours = (Number(shown.get('to')) - Number(shown.get('from'))) / 3_600_000
    expect([hours > 0.5, hours < 3]).toEqual([true, true])
    const sum = () => numberOf(page.locator('[data-sum=allowed]'))
    await expect.poll(async () => Math.abs((await sum()) / (95 * hours * 3600) - 1), until).toBeLessThan(0.2)
    await page.getByRole('button', { name: 'Earlier' }).click()
    await page.getByRole('button', { name: 'Zoom in' }).click()
    await expect.poll(async () => Math.abs((await sum()) / (95 * (hours / 2) * 3600) - 1), until).toBeLessThan(0.3)
    await link('Whole time').click()
    await expect.poll(sum, until).toBe(95 * 86_400)
    expect(problems).toEqual([])
  })

  it('calls of this moment are part of the fleet, and the page says so if Redis does not answer', async () => {
    await page.goto(`${diana.admin}/#/now?range=5m&scope=gateway`)
    await call(`${diana.url}/`, 'ann', 7)
    await textOf(page.locator('[data-sum=allowed]')).toBe('7')
    await page.goto(`${diana.admin}/#/now?range=1h`)
    await page.getByText('averages of 10 s').waitFor(until)
    await server.stop()
    await page.goto(`${diana.admin}/#/now?range=24h`)
    await page.getByText('The fleet cannot be shown, so this is this gateway alone.').waitFor(until)
    await textOf(page.locator('[data-sum=allowed]')).toMatch(/^[07]$/)
    await server.start()
  }, 60_000)
})
