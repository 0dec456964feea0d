import { writeFileSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, openStage, openTab, type Running, runGateway, type Stage, textOf, until } from './stage.ts'

const long = `a-rule-whose-name-is-${'very-'.repeat(12)}long`.slice(0, 64)
const rules = `identify:
  account: [header:x-account-id]
rules:
  - id: hello
    match: { path: /hello }
    by: account
    limit: 5/h
  - id: ${long}
    match: { path: /long }
    limit: 1000/s
  - id: perhaps
    match: { path: /perhaps }
    limit: 2/h
    whenFull: shadow
`

let stage: Stage
let browser: Browser
let built: string
let config: string
let diana: Running

beforeAll(async () => {
  stage = await openStage(rules)
  ;({ browser, built, config, diana } = stage)
  await call(`${diana.url}/hello`, 'ann', 7)
  await call(`${diana.url}/long`, 'ann', 1)
  await call(`${diana.url}/perhaps`, 'ann', 4)
}, 60_000)

afterAll(() => stage?.close())

const open = (view: string, options: Parameters<typeof openTab>[2] = {}) =>
  openTab(browser, `${diana.admin}/#/${view}`, options)

/** The boxes of all cells of a table that are seen. */
const boxesOf = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll(elements =>
    elements.map(element => {
      const { left, right, top, bottom } = element.getBoundingClientRect()
      return { left, right, top, bottom, text: element.textContent ?? '' }
    }),
  )

describe('what an operator must see', () => {
  it('a rule file that was rejected is reported on every view, with the reason', async () => {
    const { page, problems, close } = await open('now')
    await page.locator('.pulse[data-state=live]').waitFor(until)
    writeFileSync(config, rules.replace('5/h', '5/hour'))
    const notice = page.locator('.notice.rejected')
    await textOf(notice).toMatch(/diana\.yaml.*rejected.*5\/hour/)
    await page.getByRole('link', { name: 'Rules', exact: true }).click()
    await notice.waitFor(until)
    writeFileSync(config, rules)
    await notice.waitFor({ state: 'detached', ...until })
    expect(problems).toEqual([])
    await close()
  })

  it('the chosen rule is in the address, its load stays, shadow is no refusal, and the chart has a legend', async () => {
    const { page, problems, close } = await open('now')
    await page.getByRole('button', { name: 'hello' }).click(until)
    expect(new URL(page.url()).hash).toBe('#/now/hello')
    await page.reload()
    await page.getByRole('heading', { name: 'hello' }).waitFor(until)
    const legend = page.locator('.legend')
    expect(await legend.locator('li').allTextContents()).toEqual([
      'allowed',
      'refused',
      'waited',
      'shadow',
      'the time before',
    ])
    // seconds after its last call, a slow rule still shows how full it is
    const load = page.getByRole('row').filter({ hasText: 'hello' }).getByRole('meter')
    expect(await load.getAttribute('aria-valuenow', until)).toBe('100')
    await textOf(page.locator('footer')).toMatch(/UTC[+-−]?\d*|GMT/)
    await page.goBack()
    expect(problems).toEqual([])
    await close()
  })

  it('the focus returns to the rule whose details were closed', async () => {
    const { page, close } = await open('rules')
    await page.getByRole('button', { name: 'perhaps' }).click(until)
    await page.getByRole('button', { name: 'Close' }).click(until)
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent), until).toBe('perhaps')
    await close()
  })

  it('the editor reports a failed load and can be loaded again', async () => {
    const { page, close } = await open('rules')
    await page.locator('.pulse[data-state=live]').waitFor(until)
    await page.route('**/api/v1/schema', route => route.abort())
    let fails = true
    // a browser may ask twice: to load it in advance, and to run it
    await page.route('**/assets/editor*.js', route => (fails ? route.abort() : route.continue()))
    await page.getByRole('link', { name: 'Editor' }).click()
    const again = page.getByRole('button', { name: 'Try again' })
    await again.waitFor(until)
    fails = false
    await again.click(until)
    // without the schema there is no completion, but the text
    await page.locator('.cm-content').getByText('limit: 5/h').waitFor(until)
    await close()
  })
})

describe('a phone', () => {
  it('the navigation is whole, and neither columns nor rows run into each other', async () => {
    const { page, close } = await open('now', { viewport: { width: 360, height: 740 } })
    await page.locator('.by-rule').waitFor(until)
    for (const { left, right, text } of await boxesOf(page, '.band nav a')) {
      expect([text, left >= 0 && right <= 360]).toEqual([text, true])
    }
    for (const view of ['now', 'rules', 'callers', 'refusals']) {
      await page.goto(`${diana.admin}/#/${view}`)
      await page.locator('.rows [role=row]').first().waitFor(until)
      for (const { left, right, text } of await boxesOf(page, '.rows [role=cell]')) {
        expect([view, text, left >= 0 && right <= 360]).toEqual([view, text, true])
      }
      const overflowing = await page.locator('.rows [role=row]').evaluateAll(rows =>
        rows.flatMap(row => {
          const bottom = row.getBoundingClientRect().bottom
          return [...row.querySelectorAll('*')]
            .filter(inner => inner.getBoundingClientRect().bottom > bottom + 1)
            .map(inner => inner.textContent)
        }),
      )
      expect([view, overflowing]).toEqual([view, []])
      const cells = await page
        .locator('.rows [role=row]')
        .first()
        .locator('[role=cell]')
        .evaluateAll(all =>
          all.map(cell => {
            const { left, right, top, bottom } = cell.getBoundingClientRect()
            return { left, right, top, bottom, text: cell.className }
          }),
        )
      const hits = cells.flatMap((one, i) =>
        cells
          .slice(i + 1)
          .filter(other => {
            const across = Math.min(one.right, other.right) - Math.max(one.left, other.left)
            const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top)
            return across > 1 && down > 1
          })
          .map(other => [one.text, other.text]),
      )
      expect([view, hits]).toEqual([view, []])
    }
    await close()
  })
})

describe('a user that a proxy has signed in', () => {
  it('the header shows the name and the role, changes have the name, and users without a role see why', async () => {
    const identity = {
      trustedProxies: ['127.0.0.1'],
      headers: { user: 'x-user', groups: 'x-groups' },
      roles: { operator: ['group:sre'], viewer: ['group:staff'] },
      logoutUrl: '/oauth2/sign_out',
    }
    const guarded = await runGateway({ config, page: built, identity })
    const name = `ann.${'long-'.repeat(20)}name@example.com`
    // the headers that a proxy adds
    const as = (groups: string) => ({ extraHTTPHeaders: { 'x-user': name, 'x-groups': groups } })
    const ann = await openTab(browser, `${guarded.admin}/#/rules`, {
      ...as('sre'),
      viewport: { width: 390, height: 800 },
    })
    const { page } = ann
    await page.locator('.pulse[data-state=live]').waitFor(until)
    expect(await page.locator('.settings .user').getAttribute('title')).toBe(name)
    await textOf(page.locator('.settings .badge')).toBe('operator')
    expect(await page.getByRole('link', { name: 'Sign out' }).getAttribute('href')).toBe('/oauth2/sign_out')
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390)
    const changed = await page.evaluate(async () => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ rule: 'hello', text: 'id: hello\nby: account\nlimit: 6/h' })
      return (await fetch('api/v1/trials', { method: 'POST', headers, body })).status
    })
    expect(changed).toBe(200)
    await page.goto(`${guarded.admin}/#/fleet`)
    await textOf(page.locator('.changes li small').first()).toBe(`${name} · 127.0.0.1`)
    expect(ann.problems).toEqual([])
    await ann.close()
    const viewer = await openTab(browser, guarded.admin, as('staff'))
    await textOf(viewer.page.locator('.settings .badge')).toBe('read only')
    await viewer.close()
    const eve = await openTab(browser, guarded.admin, as('sales'))
    await textOf(eve.page.getByRole('alert')).toMatch(/in the groups sales, which has no role here.*group:sre/)
    await eve.close()
    await guarded.close()
  })
})

describe('signing out', () => {
  it('an operator signs out, and the token is gone from the tab', async () => {
    const token = 'a-token-for-the-test-0123'
    const guarded = await runGateway({ config, page: built, token })
    const { page, close } = await openTab(browser, guarded.admin)
    await page.getByLabel('Token').fill(token, until)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('.pulse[data-state=live]').waitFor(until)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Token').waitFor(until)
    expect(await page.evaluate(() => JSON.stringify(sessionStorage))).not.toContain(token)
    await close()
    await guarded.close()
  })
})
