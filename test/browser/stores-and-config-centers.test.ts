import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startEtcd } from '../helpers/servers/etcd-server.ts'
import { startRedis } from '../helpers/servers/redis-server.ts'
import { buildPage } from './built-page.ts'
import { call, openBrowser, openTab, runGateway, textOf, write } from './stage.ts'

const until = { timeout: 15_000 }
let browser: Browser
let built: string
let folder: string

beforeAll(async () => {
  built = await buildPage()
  browser = await openBrowser()
  folder = mkdtempSync(join(tmpdir(), 'diana-centres-'))
}, 60_000)

afterAll(async () => {
  await browser?.close()
  rmSync(folder, { recursive: true })
})

function configOf(name: string, text: string): string {
  const config = join(folder, name)
  writeFileSync(config, text)
  return config
}

describe('etcd', () => {
  it('a rule edited on the page is enforced at the next call and survives a restart', async () => {
    const etcd = await startEtcd()
    const remote = '# of the centre\nrules:\n  - id: hello\n    by: ip\n    limit: 5/h\n'
    await etcd.put('/diana/rules', remote)
    const config = configOf(
      'etcd.yaml',
      `remote: { etcd: "http://${etcd.authority}", key: /diana/rules }\nrules:\n  - { id: everything, limit: 1000/s }\n`,
    )
    let diana = await runGateway({ config, page: built })
    const { page, problems, close } = await openTab(browser, `${diana.admin}/#/rules/hello`)
    await page.getByRole('button', { name: 'Edit this rule' }).click(until)
    await page.locator('.places [aria-current=page]').getByText('Config center').waitFor(until)
    await write(page, remote.replace('5/h', '2/h'))
    await page.getByRole('button', { name: 'Review and save…' }).click(until)
    await page.getByRole('button', { name: 'Apply' }).click(until)
    await page.getByText('Applied.', { exact: true }).waitFor(until)
    expect(await call(`${diana.url}/hello`, 'ann', 3)).toEqual([200, 200, 503])
    expect(problems).toEqual([])
    await close()
    await diana.close()
    diana = await runGateway({ config, page: built })
    expect(await call(`${diana.url}/hello`, 'ann', 3)).toEqual([200, 200, 503])
    await diana.close()
    await etcd.close()
  })
})

describe('Redis', () => {
  it('the page shows how much of each rule is held in advance, and how often Redis is asked', async () => {
    const redis = await startRedis()
    const config = configOf(
      'leases.yaml',
      `store: { redis: "redis://${redis.authority}" }\nrules:\n  - { id: hello, by: ip, limit: 10000/s }\n`,
    )
    const diana = await runGateway({ config, page: built })
    const { page, problems, close } = await openTab(browser, `${diana.admin}/#/fleet`)
    await page.getByText('The processes of this gateway hold no permits in advance').waitFor(until)
    const calling = setInterval(() => void call(`${diana.url}/hello`, 'ann', 2).catch(() => {}), 10)
    await expect.poll(() => page.locator('.leases [data-rule=hello] dd').textContent(until), until).toMatch(/^\d+$/)
    expect(await page.locator('.store .facts').first().textContent()).toMatch(
      /Redis calls per decision, last minute0\.\d+/,
    )
    await page.getByRole('link', { name: 'Explain', exact: true }).click()
    await page.getByLabel('Request').fill('GET /hello')
    const explain = async () => {
      await page.getByRole('button', { name: 'Explain' }).click()
      return page.locator('.met .leased').allTextContents()
    }
    await expect.poll(explain, until).toEqual([expect.stringMatching(/^Held in advance by this gateway: \d+ permits/)])
    clearInterval(calling)
    expect(problems).toEqual([])
    await close()
    await diana.close()
    await redis.close()
  })

  it('the page reports an outage of Redis within two seconds in an operator’s words, and its return', async () => {
    const redis = await startRedis()
    const config = configOf(
      'redis.yaml',
      `store: { redis: "redis://${redis.authority}" }
rules:
  - { id: hello, by: ip, limit: 1000/s }
  - { id: orders, match: { path: /orders }, limit: 1000/s }
  - { id: pay, match: { path: /pay }, limit: 10/s, whenStoreDown: refuse }
  - { id: here, match: { path: /here }, limit: 10/s, count: local }
`,
    )
    const diana = await runGateway({ config, page: built })
    const calling = setInterval(() => void call(`${diana.url}/hello`, 'ann').catch(() => {}), 50)
    const { page, problems, close } = await openTab(browser, `${diana.admin}/#/fleet`)
    await page.getByText('Redis answers, and the fleet counts together.').waitFor(until)

    const killedAt = performance.now()
    await redis.stop('SIGKILL')
    const told = page.locator('.notice.degraded')
    await told.waitFor(until)
    expect(performance.now() - killedAt).toBeLessThan(2000)
    const words =
      /^Redis refuses connections since [\d:]+\. This process admits what was left of each limit; for 1 rule every call is refused\./
    await textOf(page.locator('.store .verdict')).toMatch(words)
    const facts = await page.locator('.store .facts').textContent()
    expect(facts).toMatch(/since.*what to do\s*Start Redis, or correct host and port in store.redis/)
    expect(facts).toMatch(/affected rules\s*all 4 rules, except here/)
    // both views say the same, in no words of a client library
    const verdict = await page.locator('.store .verdict').textContent()
    await page.getByRole('link', { name: 'Now', exact: true }).click()
    await textOf(told).toContain(verdict!)
    for (const view of ['Now', 'Rules', 'Callers', 'Refusals', 'Services', 'Explain', 'Editor', 'Fleet & store']) {
      await page.getByRole('link', { name: view, exact: true }).click()
      await page.waitForTimeout(500)
      const text = await page.locator('body').textContent()
      expect([view, /ECONN|maxRetries|riteable|Connection is closed|TLS/.exec(text!)?.[0]]).toEqual([view, undefined])
    }

    await redis.start()
    await told.waitFor({ state: 'detached', timeout: 15_000 })
    clearInterval(calling)
    // limits of single callers are kept in Redis, which the API says
    expect(problems.filter(problem => !problem.includes('503'))).toEqual([])
    await close()
    await diana.close()
    await redis.close()
  })
})

/** As a field for a day and a time takes it. */
function inputOf(moment: number): string {
  const date = new Date(moment)
  return new Date(moment - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function rulesIn({ authority }: { readonly authority: string }, rule: string): string {
  return `store: { redis: "redis://${authority}", timeout: 2s }\nidentify: { account: header:x-account-id }\nrules:\n  - ${rule}\n`
}

describe('limits of single callers', () => {
  it('a limit set on the page is enforced by two gateways within a second, survives their restart, and can be removed', async () => {
    const redis = await startRedis()
    const config = configOf(
      'override.yaml',
      rulesIn(redis, '{ id: each, by: account, limit: { overrides: true, default: 2/h } }'),
    )
    const run = () => Promise.all([1, 2].map(() => runGateway({ config, page: built })))
    let gateways = await run()
    const refused = async (at: number) => (await call(`${gateways[at]!.url}/`, 'ann'))[0] === 503
    const first = await openTab(browser, `${gateways[0]!.admin}/#/callers`)
    expect(await call(`${gateways[0]!.url}/`, 'ann', 3)).toEqual([200, 200, 503])
    let panel = first.page.getByRole('region', { name: 'Limits of single callers' })
    await panel.getByLabel('account of the caller').fill('ann', until)
    await panel.getByLabel('Limit', { exact: true }).fill('5000/h')
    await panel.getByLabel('Until').fill(inputOf(Date.now() + 3 * 86_400_000))
    await panel.getByLabel('Reason').fill('launch week')
    await panel.getByRole('button', { name: 'Set limit' }).click()
    await first.page.getByText('ann has 5000/h from now on.').waitFor(until)
    const setAt = performance.now()
    for (const at of [0, 1]) await expect.poll(() => refused(at), { timeout: 1000, interval: 20 }).toBe(false)
    expect(performance.now() - setAt).toBeLessThan(1000)
    await panel.getByRole('cell', { name: 'launch week' }).waitFor(until)
    expect(await call(`${gateways[1]!.url}/`, 'bob', 3)).toEqual([200, 200, 503])

    expect(first.problems).toEqual([])
    await first.close()
    await Promise.all(gateways.map(gateway => gateway.close()))
    gateways = await run()
    for (const at of [0, 1]) await expect.poll(() => refused(at), { timeout: 1000, interval: 20 }).toBe(false)

    const { page, problems, close } = await openTab(browser, `${gateways[0]!.admin}/#/callers`)
    panel = page.getByRole('region', { name: 'Limits of single callers' })
    await panel.getByRole('button', { name: 'Remove' }).click(until)
    await page.getByText('account=ann has the usual limit again.').waitFor(until)
    for (const at of [0, 1]) await expect.poll(() => refused(at), { timeout: 1000, interval: 20 }).toBe(true)
    expect(problems).toEqual([])
    await close()
    await Promise.all(gateways.map(gateway => gateway.close()))
    await redis.close()
  })

  it('credit is added on the page to a caller of the list, and used by another gateway', async () => {
    const redis = await startRedis()
    const config = configOf('credit.yaml', rulesIn(redis, '{ id: paid, by: account, limit: 2/h, credit: true }'))
    const gateways = await Promise.all([1, 2].map(() => runGateway({ config, page: built })))
    const { page, problems, close } = await openTab(browser, `${gateways[0]!.admin}/#/callers`)
    await page.getByRole('region', { name: 'Limits of single callers' }).waitFor(until)
    expect(await call(`${gateways[0]!.url}/`, 'ann', 3)).toEqual([200, 200, 503])
    await page.getByRole('button', { name: 'Limit…' }).click(until)
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Credit beside the limit: 0').waitFor(until)
    await dialog.getByLabel('Credit').fill('3')
    await dialog.getByRole('button', { name: 'Add credit' }).click()
    await page.getByText('now has credit for 3.').waitFor(until)
    expect(await call(`${gateways[1]!.url}/`, 'ann', 4)).toEqual([200, 200, 200, 503])
    expect(problems).toEqual([])
    await close()
    await Promise.all(gateways.map(gateway => gateway.close()))
    await redis.close()
  })
})
