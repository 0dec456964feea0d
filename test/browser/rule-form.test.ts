import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { call, openStage, openTab, type Running, runGateway, type Stage, textOf, until } from './stage.ts'

const rules = `# the rules of the shop
identify:
  account: [header:x-account-id]   # set by the proxy
  tenant: header:x-tenant

rules:
  # what customers order
  - id: orders
    match: { path: /orders, header: { x-test: 'yes' } }
    by: account
    limit: 5/h          # agreed with sales
  - { id: each-address, by: ip, limit: 1000/s }
  - id: by-hand
    match: none
    limit: 1/s
`
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let stage: Stage
let browser: Browser
let built: string
let config: string
let diana: Running
let page: Page
let problems: string[]

beforeAll(async () => {
  stage = await openStage(rules)
  ;({ browser, built, config, diana } = stage)
  ;({ page, problems } = await openTab(browser, `${diana.admin}/#/rules`))
}, 60_000)

afterAll(() => stage?.close())

const file = () => readFileSync(config, 'utf8')
const button = (name: string) => page.getByRole('button', { name, exact: true })
const dialog = () => page.getByRole('dialog')
const field = (name: string) => dialog().locator(`[data-field=${name}]`)
const count = () => dialog().getByRole('textbox', { name: 'Calls', exact: true })
const applied = () => page.getByText('Applied.', { exact: true }).waitFor(until)

/** Opens the form of a rule, from a rule view that was just opened. */
async function openForm(rule: string): Promise<void> {
  await page.locator('.all-rules .rows').getByRole('button', { name: rule, exact: true }).click(until)
  await button('Change').click(until)
  await dialog().waitFor(until)
}

/** Axe finds nothing serious in what is shown. */
async function expectAccessible(shown: Page): Promise<void> {
  await shown.evaluate(axe)
  const { violations } = await shown.evaluate<{
    violations: { id: string; impact: string; nodes: { html: string }[] }[]
  }>('axe.run()')
  const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
  expect(grave.map(({ id, nodes }) => ({ id, at: nodes.map(({ html }) => html) }))).toEqual([])
}

/** The rules at the first try of a test, for its second one. */
const atFirstTry = new Map<string, string>()

beforeEach(async ({ task }) => {
  const text = atFirstTry.get(task.id)
  if (text === undefined) atFirstTry.set(task.id, file())
  else if (text !== file()) writeFileSync(config, text)
  await page.goto(`${diana.admin}/#/rules`)
  // two addresses of one document that follow each other at once may leave the view, and what it says of the last change, as it was
  await page.reload()
})

describe('rules by form', () => {
  it('a rule is added from a template in five clicks without YAML, and it is enforced', async () => {
    await page.goto(`${diana.admin}/#/now`)
    let clicks = 0
    const click = async (target: Locator) => {
      clicks++
      await target.click(until)
    }
    const before = file()
    await click(page.getByRole('link', { name: 'Rules', exact: true }))
    await click(button('Add a rule'))
    await click(dialog().getByRole('button', { name: /Limit each account/ }))
    await dialog().getByLabel('Name').fill('reports')
    await dialog().getByLabel('Paths').fill('/reports/**')
    await count().fill('2')
    await textOf(dialog().locator('.yaml')).toBe('id: reports\nmatch: { path: /reports/** }\nby: account\nlimit: 2/m')
    await click(button('Review…'))
    await textOf(dialog().locator('.changed-rules')).toContain('added reports')
    await click(button('Apply'))
    await applied()
    expect(clicks).toBeLessThanOrEqual(5)
    expect(file()).toBe(`${before}  - id: reports\n    match: { path: /reports/** }\n    by: account\n    limit: 2/m\n`)
    expect(await call(`${diana.url}/reports/today`, 'ann', 3)).toEqual([200, 200, 503])
    expect(problems).toEqual([])
  })

  it('every template fills a form without mistakes, and dimensions of identify are offered', async () => {
    await button('Add a rule').click(until)
    await dialog().locator('.templates').waitFor(until)
    const names = await dialog().locator('.templates b').allTextContents()
    expect(names).toHaveLength(6)
    for (const name of names) {
      await dialog().getByRole('button', { name }).click(until)
      await dialog().getByText('No mistakes').waitFor(until)
      await dialog().getByLabel('tenant').waitFor(until)
      await button('Another template').click(until)
    }
  })

  it('a limit changed by form changes its own text and nothing else, and undo restores the file', async () => {
    const before = file()
    await openForm('orders')
    await count().fill('7')
    await textOf(dialog().locator('.yaml')).toContain('limit: 7/h          # agreed with sales')
    await textOf(dialog().locator('.rule-written')).toContain('match')
    await button('Review…').click(until)
    await textOf(dialog().locator('.changed-rules')).toContain('changed orders')
    await button('Apply').click(until)
    await applied()
    expect(file()).toBe(before.replace('limit: 5/h', 'limit: 7/h'))
    await button('Undo').click(until)
    await textOf(dialog().locator('.cm-deletedChunk')).toContain('7/h')
    await button('Apply').click(until)
    await expect.poll(file, until).toBe(before)
    expect(problems).toEqual([])
  })

  it('a comment is kept with the change, stands above the rule, and cannot change the document', async () => {
    const before = file()
    await openForm('orders')
    await count().fill('8')
    await button('Review…').click(until)
    const hostile = '# x"\u2028  - id: evil\u0085limit: 0/s {[ *a'
    await dialog().getByLabel('Why').fill(hostile)
    await dialog().getByLabel('Also write it as a comment above the rule').check()
    await textOf(dialog().locator('.cm-content')).toContain('id: evil limit: 0/s')
    await button('Apply').click(until)
    await applied()
    const written = file()
    const expected = parse(before)
    expected.rules[0].limit = '8/h'
    expect(parse(written)).toEqual(expected)
    const comment = '# x" - id: evil limit: 0/s {[ *a'
    expect(written).toBe(before.replace('5/h', '8/h').replace('  - id: orders', `  # ${comment}\n  - id: orders`))
    await page.goto(`${diana.admin}/#/editor`)
    const version = page.locator('.versions li').first()
    await textOf(version.locator('.comment')).toBe(comment)
    await textOf(version.locator('.replaced-rules')).toBe('changed: orders')
    await page.goto(`${diana.admin}/#/fleet`)
    await textOf(page.locator('.changes li').first()).toContain(comment)
  })

  it('a mistake is shown beside its field, and the form cannot be reviewed meanwhile', async () => {
    await openForm('orders')
    await dialog().getByLabel('Paths').fill('orders')
    await textOf(field('paths').locator('.mistake')).toContain('must begin with /')
    await expect.poll(() => dialog().getByLabel('Paths').getAttribute('aria-invalid'), until).toBe('true')
    await count().fill('many')
    await textOf(field('limit').locator('.mistake')).toContain('must be <count>/<period>')
    expect(await button('Review…').isDisabled()).toBe(true)
    await dialog().getByLabel('Paths').fill('/orders')
    await count().fill('9')
    await expect.poll(() => button('Review…').isDisabled(), until).toBe(false)
    await expect.poll(() => dialog().locator('.mistake').count(), until).toBe(0)
  })

  it('a rule that the form cannot show is offered as text, and a taken name is refused', async () => {
    await openForm('by-hand')
    await textOf(dialog()).toContain('cannot show how this rule uses match')
    await dialog().getByRole('link', { name: 'Change it as text' }).click(until)
    await page.locator('.cm-content').waitFor(until)
    await page.goto(`${diana.admin}/#/rules`)
    await button('Add a rule').click(until)
    await dialog()
      .getByRole('button', { name: /whole system/ })
      .click(until)
    await dialog().getByLabel('Name').fill('orders')
    await textOf(field('id').locator('.mistake')).toContain('exists already')
  })

  it('a new rule can start in shadow, and a change of another operator meanwhile is not lost', async () => {
    await button('Add a rule').click(until)
    await dialog()
      .getByRole('button', { name: /Limit the whole system/ })
      .click(until)
    await dialog()
      .getByLabel(/Start in shadow/)
      .check()
    await textOf(dialog().locator('.yaml')).toContain('whenFull: shadow')
    await button('Review…').click(until)
    await button('Apply').waitFor(until)
    writeFileSync(config, file().replace('1000/s', '2000/s'))
    await button('Apply').click(until)
    await button('Apply mine on top of theirs').click(until)
    await button('Apply').click(until)
    await applied()
    const written = parse(file()) as { rules: { id: string; limit: string; whenFull?: string }[] }
    expect(written.rules.find(({ id }) => id === 'each-address')?.limit).toBe('2000/s')
    expect(written.rules.find(({ id }) => id === 'whole-system')).toMatchObject({ whenFull: 'shadow' })
  })
})

describe('a gateway with a config center', () => {
  it('a new rule is written to the config center unless the local file is chosen', async () => {
    const remote = join(dirname(config), 'center.yaml')
    const local = join(dirname(config), 'local.yaml')
    writeFileSync(remote, 'rules:\n  - { id: far, limit: 1/s }\n')
    writeFileSync(local, `remote: { file: ${remote} }\nrules:\n  - { id: near, limit: 1/s }\n`)
    const both = await runGateway({ config: local, page: built })
    const tab = await openTab(browser, `${both.admin}/#/rules`, { colorScheme: 'dark' })
    const named = (name: string | RegExp) => tab.page.getByRole('button', { name })
    const add = async (name: string) => {
      await named('Add a rule').click(until)
      await named(/Protect the login/).click(until)
      await tab.page.getByLabel('Name').fill(name)
      if (name === 'second') await tab.page.getByLabel('the local file').check()
      await tab.page.getByText('No mistakes').waitFor(until)
      await expectAccessible(tab.page)
      await named('Review…').click(until)
      await tab.page.locator('.changed-rules').waitFor(until)
      await expectAccessible(tab.page)
      await named('Apply').click(until)
      await tab.page.locator('.all-rules .rows').getByRole('button', { name }).waitFor(until)
    }
    await add('first')
    expect(readFileSync(remote, 'utf8')).toContain('id: first')
    await add('second')
    expect(readFileSync(local, 'utf8')).toContain('id: second')
    expect(readFileSync(remote, 'utf8')).not.toContain('id: second')
    expect(tab.problems).toEqual([])
    await tab.close()
    await both.close()
  })
})

describe('the table of rules', () => {
  it('rules are sorted by a click on a column, and the address keeps it', async () => {
    await call(`${diana.url}/reports/today`, 'bea', 4)
    const first = page.locator('.all-rules .rows .rule').first()
    const row = page.locator('.all-rules .rows [role=row]').filter({ hasText: 'reports' })
    await expect.poll(() => row.locator('.refused').textContent().then(Number), until).toBeGreaterThan(1)
    const header = page.getByRole('columnheader', { name: 'refused, 5 min' })
    expect(await header.getAttribute('aria-sort')).toBe('none')
    await header.getByRole('button').click(until)
    await expect.poll(() => header.getAttribute('aria-sort'), until).toBe('descending')
    await textOf(first).toBe('reports')
    await expect.poll(() => page.url(), until).toContain('#/rules?sort=-refused')
    await page.reload()
    await textOf(first).toBe('reports')
    await first.getByRole('button').click(until)
    await expect.poll(() => page.url(), until).toContain('#/rules/reports?sort=-refused')
    const byName = page.getByRole('columnheader', { name: 'rule' })
    await byName.getByRole('button').click(until)
    await textOf(first).toBe('by-hand')
    await expect.poll(() => byName.getAttribute('aria-sort'), until).toBe('ascending')
  })
})

describe('a token that may only read', () => {
  it('a token that may only read can neither add nor change rules', async () => {
    const token = 'a-token-for-the-test-0123'
    const viewToken = 'a-view-token-for-the-test'
    const guarded = await runGateway({ config, page: built, token, viewToken })
    const { page: viewer, close } = await openTab(browser, `${guarded.admin}/#/rules/orders`)
    await viewer.getByLabel('Token').fill(viewToken, until)
    await viewer.getByRole('button', { name: 'Sign in' }).click()
    await viewer.locator('.details').waitFor(until)
    await viewer.getByText('read only').waitFor(until)
    for (const name of ['Add a rule', 'Change', 'Edit this rule', 'Undo']) {
      expect(await viewer.getByRole('button', { name, exact: true }).count()).toBe(0)
    }
    const answer = await fetch(`${guarded.admin}/api/v1/draft`, {
      method: 'POST',
      headers: { authorization: `Bearer ${viewToken}`, 'content-type': 'application/json' },
      body: '{"id":"orders"}',
    })
    expect(answer.status).toBe(403)
    await close()
    await guarded.close()
  })
})
