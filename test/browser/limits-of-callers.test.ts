import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../packages/limiter/src/sources/servers/redis-server.ts'
import { buildPage, call, openBrowser, openTab, runGateway } from './stage.ts'

const patience = { timeout: 15_000 }
let browser: Browser
let redis: RedisServer
let built: Awaited<ReturnType<typeof buildPage>>
let folder: string

beforeAll(async () => {
  built = await buildPage()
  browser = await openBrowser()
  redis = await startRedis()
  folder = mkdtempSync(join(tmpdir(), 'diana-terms-'))
}, 60_000)

afterAll(async () => {
  await browser?.close()
  await redis?.close()
  built?.remove()
  rmSync(folder, { recursive: true })
})

function configOf(name: string, rule: string): string {
  const config = join(folder, name)
  const store = `store: { redis: "redis://${redis.authority}", prefix: ${name} }`
  writeFileSync(config, `${store}\nidentify: { account: header:x-account-id }\nrules:\n  - ${rule}\n`)
  return config
}

/** As a field for a day and a time takes it. */
function inputOf(moment: number): string {
  const date = new Date(moment)
  return new Date(moment - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

it('a limit set on the page is enforced by two gateways within a second, survives their restart, and can be removed', async () => {
  const config = configOf('override', '{ id: each, by: account, limit: { overrides: true, default: 2/h } }')
  const run = () => Promise.all([1, 2].map(() => runGateway({ config, page: built.folder })))
  let gateways = await run()
  const refused = async (at: number) => (await call(`${gateways[at]!.url}/`, 'ann'))[0] === 503
  const first = await openTab(browser, `${gateways[0]!.admin}/#/callers`)
  expect(await call(`${gateways[0]!.url}/`, 'ann', 3)).toEqual([200, 200, 503])
  let panel = first.page.getByRole('region', { name: 'Limits of single callers' })
  await panel.getByLabel('account of the caller').fill('ann', patience)
  await panel.getByLabel('Limit', { exact: true }).fill('5000/h')
  await panel.getByLabel('Until').fill(inputOf(Date.now() + 3 * 86_400_000))
  await panel.getByLabel('Reason').fill('launch week')
  await panel.getByRole('button', { name: 'Set limit' }).click()
  await first.page.getByText('ann has 5000/h from now on.').waitFor(patience)
  const setAt = performance.now()
  for (const at of [0, 1]) await expect.poll(() => refused(at), { timeout: 1000, interval: 20 }).toBe(false)
  expect(performance.now() - setAt).toBeLessThan(1000)
  await panel.getByRole('cell', { name: 'launch week' }).waitFor(patience)
  expect(await call(`${gateways[1]!.url}/`, 'bob', 3)).toEqual([200, 200, 503])

  expect(first.problems).toEqual([])
  await first.close()
  await Promise.all(gateways.map(gateway => gateway.close()))
  gateways = await run()
  for (const at of [0, 1]) await expect.poll(() => refused(at), { timeout: 1000, interval: 20 }).toBe(false)

  const { page, problems, close } = await openTab(browser, `${gateways[0]!.admin}/#/callers`)
  panel = page.getByRole('region', { name: 'Limits of single callers' })
  await panel.getByRole('button', { name: 'Remove' }).click(patience)
  await page.getByText('account=ann has the usual limit again.').waitFor(patience)
  for (const at of [0, 1]) await expect.poll(() => refused(at), { timeout: 1000, interval: 20 }).toBe(true)
  expect(problems).toEqual([])
  await close()
  await Promise.all(gateways.map(gateway => gateway.close()))
})

it('credit is added on the page to a caller of the list, and used by another gateway', async () => {
  const config = configOf('credit', '{ id: paid, by: account, limit: 2/h, credit: true }')
  const gateways = await Promise.all([1, 2].map(() => runGateway({ config, page: built.folder })))
  const { page, problems, close } = await openTab(browser, `${gateways[0]!.admin}/#/callers`)
  await page.getByRole('region', { name: 'Limits of single callers' }).waitFor(patience)
  expect(await call(`${gateways[0]!.url}/`, 'ann', 3)).toEqual([200, 200, 503])
  await page.getByRole('button', { name: 'Limit…' }).click(patience)
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Credit beside the limit: 0').waitFor(patience)
  await dialog.getByLabel('Credit').fill('3')
  await dialog.getByRole('button', { name: 'Add credit' }).click()
  await page.getByText('now has credit for 3.').waitFor(patience)
  expect(await call(`${gateways[1]!.url}/`, 'ann', 4)).toEqual([200, 200, 200, 503])
  expect(problems).toEqual([])
  await close()
  await Promise.all(gateways.map(gateway => gateway.close()))
})
