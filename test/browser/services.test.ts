import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter } from 'diana-limiter'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createAdmin } from '../../packages/gateway/src/admin/server/create-admin.ts'
import { createGateway } from '../../packages/gateway/src/gateway.ts'
import { gatewaySection } from '../../packages/gateway/src/settings/gateway-settings.ts'
import { buildPage } from './built-page.ts'
import { listen, openBrowser, openTab } from './stage.ts'

const until = { timeout: 15_000 }
const slowMs = 120
const closing: (() => unknown)[] = []
let browser: Browser
let built: string
let admin: string
let alone: string
const services: Record<'fast' | 'slow' | 'failing', string> = { fast: '', slow: '', failing: '' }
let fails = true

async function serve(answer: Parameters<typeof createServer>[1]): Promise<string> {
  const server: Server = createServer(answer)
  closing.push(
    () => server.close(),
    () => server.closeAllConnections(),
  )
  return await listen(server)
}

beforeAll(async () => {
  built = await buildPage()
  browser = await openBrowser()
  closing.push(() => browser.close())
  services.fast = await serve((_request, response) => response.end('served'))
  services.slow = await serve((_request, response) => void setTimeout(() => response.end('served'), slowMs))
  services.failing = await serve((_request, response) => response.writeHead(fails ? 503 : 200).end())
  const folder = mkdtempSync(join(tmpdir(), 'diana-services-'))
  closing.push(() => rmSync(folder, { recursive: true }))
  const health = { failures: 3, rest: '1s', failStatuses: [503] }
  const to = [services.fast, services.slow, services.failing]
  const gateway = {
    routes: [
      { path: '/orders', to, health },
      { path: '/other', to: services.fast },
    ],
  }
  const config = join(folder, 'diana.yaml')
  const rules = [{ id: 'backend', algorithm: 'adaptive', limit: 50 }]
  writeFileSync(config, JSON.stringify({ rules, gateway }))
  const limiter = await createLimiter({ config, sections: [gatewaySection] })
  const app = await createGateway({ limiter })
  const console = await createAdmin({ limiter, host: '127.0.0.1', page: built })
  const other = await createLimiter({ rules: [{ id: 'all', limit: '5/s' }] })
  const otherConsole = await createAdmin({ limiter: other, host: '127.0.0.1', page: built })
  closing.push(
    () => app.close(),
    () => console.close(),
    () => limiter.close(),
  )
  closing.push(
    () => otherConsole.close(),
    () => other.close(),
  )
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  admin = await console.listen({ host: '127.0.0.1', port: 0 })
  alone = await otherConsole.listen({ host: '127.0.0.1', port: 0 })
  let isOver = false
  const calling = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      await fetch(`${url}/orders`).then(answer => answer.arrayBuffer())
      await pause(20)
    }
  })
  closing.unshift(async () => {
    isOver = true
    await Promise.all(calling)
  })
}, 60_000)

afterAll(async () => {
  for (const close of closing) await close()
})

const rowOf = (page: Page, service: keyof typeof services) =>
  page.locator('.services .rows [role=row]', { has: page.locator(`[data-address="${services[service]}"]`) }).first()

describe('the view of services', () => {
  it('an address that fails is listed first until it has recovered, and a slow one shows its latency', async () => {
    const { page, problems, close } = await openTab(browser, `${admin}/#/services`)
    const failing = rowOf(page, 'failing')
    const first = page.locator('.services .rows [data-address]').first()
    await expect.poll(() => first.getAttribute('data-address'), until).toBe(services.failing)
    await failing.locator('[data-state=resting]').waitFor(until)
    expect(await failing.textContent()).toContain('status 503')
    const errorsOf = (service: keyof typeof services) =>
      rowOf(page, service).locator('[data-errors]').getAttribute('data-errors')
    await expect.poll(() => errorsOf('failing'), until).toBe('1')
    await expect.poll(() => errorsOf('fast'), until).toBe('0')
    const latencyOf = async (service: keyof typeof services) =>
      Number(await rowOf(page, service).locator('[data-p50]').getAttribute('data-p50'))
    await expect.poll(() => latencyOf('slow'), until).toBeGreaterThanOrEqual(slowMs)
    await expect.poll(() => latencyOf('fast'), until).toBeLessThan(slowMs)
    // the line of the whole route, the notice above, and the gateway itself
    expect(await page.locator('.services .whole').textContent()).toContain('/orders')
    await page.locator('.notice.unhealthy', { hasText: '1 of 3 addresses of /orders is unhealthy' }).waitFor(until)
    const process = page.locator('.processes .rows [role=row]')
    expect(await process.count()).toBe(1)
    expect(await process.locator('[data-pid]').getAttribute('data-pid')).toBe(String(globalThis.process.pid))
    fails = false
    await failing.locator('[data-state=healthy]').waitFor(until)
    await expect.poll(() => page.locator('.notice.unhealthy').count(), until).toBe(0)
    expect(problems).toEqual([])
    await close()
  }, 60_000)

  it('an explanation shows what an adaptive rule has found', async () => {
    const { page, problems, close } = await openTab(browser, `${admin}/#/explain`)
    await page.locator('textarea').fill('GET /orders')
    const ask = async () => {
      await page.locator('form.ask button').click()
      await page.locator('.found [data-fact=limit] dd').waitFor(until)
      return await page.locator('.found [data-fact=latency] dd').textContent()
    }
    // known once calls have ended
    await expect.poll(ask, until).toMatch(/\d\s?m?s$/)
    expect(problems).toEqual([])
    await close()
  })

  it('a limiter without a gateway has no services, which the view says, and its process is shown', async () => {
    const { page, problems, close } = await openTab(browser, `${alone}/#/services`)
    await page.locator('nav a[href="#/services"]').waitFor(until)
    await page.locator('.panel .empty', { hasText: 'forwards no calls' }).waitFor(until)
    await page.locator('.processes [data-pid]').waitFor(until)
    expect(await page.locator('.services').count()).toBe(0)
    expect(await page.locator('.processes .connections').count()).toBe(0)
    expect(problems).toEqual([])
    await close()
  })

  it('a gateway of an earlier version, which knows no processes, is shown without the view', async () => {
    const { page, close } = await openTab(browser, 'about:blank')
    await page.route('**/api/v1/openapi.json', route => route.fulfill({ json: { paths: { '/api/v1/blocks': {} } } }))
    await page.goto(`${admin}/#/now`)
    await page.locator('.pulse[data-state=live]').waitFor(until)
    expect(await page.locator('nav a[href="#/fleet"]').count()).toBe(1)
    expect(await page.locator('nav a[href="#/services"]').count()).toBe(0)
    await close()
  })
})
