import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../helpers/servers/redis-server.ts'
import { call, openStage, openTab, type Running, type Stage, textOf, until, write } from './stage.ts'

const rulesOf = (redis: string) => `store: { redis: "redis://${redis}", timeout: 2s }
identify:
  account: [header:x-account-id]
rules:
  - id: orders
    match: { path: /orders }
    by: account
    limit: 5/h
  - id: each-address
    by: ip
    limit: 1000/s
    block: manual
  - id: reports
    match: { path: /reports }
    by: account
    limit: { default: 2/h, overrides: true }
`

let stage: Stage
let server: RedisServer
let rules: string
let config: string
let diana: Running
let page: Page
let problems: string[]
let clicks = 0

beforeAll(async () => {
  server = await startRedis()
  rules = rulesOf(server.authority)
  stage = await openStage(rules)
  ;({ config, diana } = stage)
  await call(`${diana.url}/orders`, 'ann', 7)
  await call(`${diana.url}/orders`, 'bob', 2)
  ;({ page, problems } = await openTab(stage.browser, diana.admin))
}, 60_000)

afterAll(async () => {
  await stage?.close()
  await server?.close()
})

/** Where pictures of each task's last step are written, if anywhere. */
const pictures = process.env.DIANA_TASK_PICTURES
let pictured = 0

/** Each task begins at the first view, and its clicks are counted; what is typed is not. */
async function task(work: (click: (target: Locator) => Promise<void>) => Promise<void>): Promise<void> {
  clicks = 0
  await page.goto(`${diana.admin}/#/now`)
  await work(async target => {
    clicks++
    await target.click(until)
  })
  if (pictures) await page.screenshot({ path: join(pictures, `task-${++pictured}.png`) })
  expect(clicks).toBeLessThanOrEqual(5)
  expect(problems).toEqual([])
}

const link = (name: string) => page.getByRole('link', { name, exact: true })
const button = (name: string) => page.getByRole('button', { name, exact: true })
const caller = (name: string) => page.locator('.callers .rows [role=row]').filter({ hasText: name })

describe('what an operator does every day, each in at most five clicks', () => {
  it('the last call of a refused caller is explained with what is left', () =>
    task(async click => {
      await click(link('Callers'))
      await click(button('Show names'))
      await page.getByLabel('Find a caller').fill('ann')
      await click(caller('ann').getByRole('link', { name: 'Why?' }))
      await textOf(page.locator('.verdict')).toContain('This call would be refused by orders.')
      expect(await page.getByLabel('Request').inputValue()).toBe('GET /orders\nx-account-id: ann')
      await textOf(page.locator('.met')).toContain('0 left; the limit is 5 / h')
    }))

  it('the last refused call is shown with its path and what would have passed', () =>
    task(async click => {
      await click(link('Refusals'))
      const row = page.locator('.refusals .rows [role=row]').first()
      await textOf(row.locator('.call')).toBe('GET /orders')
      await textOf(row.locator('.passed')).toMatch(/later, or with 6 \/ h/)
      await click(row.getByRole('link', { name: 'Why?' }))
      await textOf(page.locator('.verdict')).toContain('orders')
    }))

  it('the heaviest callers of /orders are shown with their distance from the limit', () =>
    task(async click => {
      await click(link('Rules'))
      await click(button('orders'))
      await click(link('Its callers'))
      await click(button('Show names'))
      await page.getByLabel('Sort by').selectOption('most calls')
      await textOf(caller('ann').locator('.calls')).toBe('7')
      await textOf(caller('ann').locator('.used')).toContain('0 left')
      await textOf(caller('bob').locator('.used')).toContain('3 left; the limit is 5 / h')
    }))

  it('an address is blocked for ten minutes, and the block is lifted', () =>
    task(async click => {
      await click(link('Callers'))
      await page.getByLabel('ip to block').fill('127.0.0.1', until)
      await click(button('Block by value'))
      await page.locator('.said').getByText('127.0.0.1 is blocked.').waitFor(until)
      expect(await call(`${diana.url}/orders`, 'cleo')).toEqual([503])
      await click(button('Unblock'))
      await textOf(page.locator('.said')).toMatch(/no longer blocked by each-address/)
      expect(await call(`${diana.url}/orders`, 'cleo')).toEqual([200])
    }))

  it('a tighter rule runs in shadow, is compared with the rule, and is put in force', () =>
    task(async click => {
      await click(link('Rules'))
      await click(button('orders'))
      await click(button('Try a change in shadow'))
      const text = page.getByRole('textbox', { name: /Change the rule/ })
      await text.fill((await text.inputValue()).replace('5/h', '4/h'))
      await click(button('Start the trial'))
      await page.getByText('A trial of this rule is running').waitFor(until)
      await call(`${diana.url}/orders`, 'dan', 5)
      await textOf(page.getByRole('region', { name: 'Candidate' }).locator('[data-fact=refused] dd')).toBe('1 (20%)')
      await click(button('Put in force'))
      await page.getByText('The candidate is in force.').waitFor(until)
      expect(readFileSync(config, 'utf8')).toBe(rules.replace('5/h', '4/h'))
    }))

  it('a limit is raised, with the difference shown before it is in force', () =>
    task(async click => {
      await click(link('Rules'))
      await click(button('orders'))
      await click(button('Edit this rule'))
      await page.locator('.cm-content').waitFor(until)
      await write(page, rules.replace('5/h', '50/h'))
      await click(button('Review and save…'))
      await click(button('Apply'))
      await page.getByText('Applied.', { exact: true }).waitFor(until)
      expect(await call(`${diana.url}/orders`, 'eve', 6)).toEqual(Array(6).fill(200))
    }))

  it('a change is rolled back, with the difference shown before', () =>
    task(async click => {
      const raised = readFileSync(config, 'utf8')
      await click(link('Editor'))
      await click(button('Roll back…').first())
      await textOf(page.getByRole('dialog').locator('.cm-deletedChunk')).toContain('50/h')
      await click(button('Apply'))
      await page.getByText('Applied.', { exact: true }).waitFor(until)
      expect(readFileSync(config, 'utf8')).toBe(rules.replace('5/h', '4/h'))
      expect(raised).toBe(rules.replace('5/h', '50/h'))
    }))

  it('the rule to tighten is found: the rules are sorted by refusals, and the last changes are listed', () =>
    task(async click => {
      await textOf(page.locator('.by-rule .rows .rule').first()).toBe('orders')
      await click(link('Fleet & store'))
      await textOf(page.locator('.changes')).toMatch(/rules written.*trial put in force.*caller unblocked/s)
    }))

  it('a new rule is added from a template, without a word of YAML', () =>
    task(async click => {
      await click(link('Rules'))
      await click(button('Add a rule'))
      await click(page.locator('.templates button').filter({ hasText: 'Protect an expensive route' }))
      await page.getByRole('dialog').getByLabel('Name').fill('exports')
      await page.getByRole('dialog').getByLabel('Paths').fill('/exports')
      await click(button('Review…'))
      await click(button('Apply'))
      await expect.poll(() => readFileSync(config, 'utf8'), until).toContain('id: exports')
    }))

  it('one customer gets a higher limit, with an end and a reason', () =>
    task(async click => {
      expect(await call(`${diana.url}/reports`, 'gus', 3)).toEqual([200, 200, 503])
      await click(link('Callers'))
      await click(button('Show names'))
      await page.getByLabel('Find a caller').fill('gus')
      const row = page.locator('.callers .rows [role=row]').filter({ hasText: 'gus' }).filter({ hasText: 'reports' })
      await click(row.getByRole('button', { name: 'Limit…' }))
      const dialog = page.getByRole('dialog')
      await dialog.getByLabel('Limit', { exact: true }).fill('50/h')
      await dialog.getByLabel('Until').fill('2099-01-01T00:00')
      await dialog.getByLabel('Reason').fill('quarterly report')
      await click(dialog.getByRole('button', { name: 'Set limit' }))
      await page.getByText('has 50/h from now on.').waitFor(until)
      await expect.poll(async () => (await call(`${diana.url}/reports`, 'gus'))[0], until).toBe(200)
    }))

  it('the health of Redis is shown with what happened while it was down', async () => {
    await server.stop()
    await expect.poll(async () => (await call(`${diana.url}/orders`, 'hal'))[0], until).toBe(200)
    await page.getByText('Redis refuses connections since').waitFor(until)
    await server.start()
    await page.getByText('Redis refuses connections since').waitFor({ state: 'detached', timeout: 30_000 })
    await task(async click => {
      await click(link('Fleet & store'))
      await textOf(page.locator('.store .verdict')).toContain('Redis answers')
      await textOf(page.locator('.store .history')).toMatch(/\d+ calls decided without Redis, about \d+ of them beyond/)
    })
  }, 90_000)
})
