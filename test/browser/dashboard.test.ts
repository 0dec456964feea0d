import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { buildPage, call, openBrowser, openTab, type Running, runGateway, type Tab, write } from './stage.ts'

const rules = `# kept as it is
identify:
  account: [header:x-account-id, query:account]
rules:
  - id: everything
    limit: 1000/s
  - id: hello # one path
    match: { path: /hello }
    by: account
    limit: 5/h
  - id: perhaps
    match: { path: /hello }
    limit: 2/h
    whenFull: shadow
`

let browser: Browser
let built: Awaited<ReturnType<typeof buildPage>>
let folder: string
let config: string
let diana: Running
let tabs: Tab[]

beforeAll(async () => {
  built = await buildPage()
  browser = await openBrowser()
}, 60_000)

afterAll(async () => {
  await browser?.close()
  built?.remove()
})

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'diana-dashboard-'))
  config = join(folder, 'diana.yaml')
  writeFileSync(config, rules)
  diana = await runGateway({ config, page: built.folder })
  tabs = []
})

afterEach(async () => {
  for (const tab of tabs) await tab.close()
  await diana.close()
  rmSync(folder, { recursive: true })
})

async function open(view: string, options: Parameters<typeof openTab>[2] = {}): Promise<Tab> {
  const tab = await openTab(browser, `${diana.admin}/#/${view}`, options)
  tabs.push(tab)
  return tab
}

const until = { timeout: 15_000 }
const textOf = (locator: Locator) => expect.poll(() => locator.textContent(), until)
const row = (page: Page, rule: string) =>
  page.getByRole('row').filter({ has: page.getByRole('button', { name: rule }) })

async function save(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Review and save…' }).click(until)
  await page.getByRole('button', { name: 'Apply' }).click(until)
}

/** Keeps the event loop busy for so long. */
function block(ms: number): void {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('the statistics on the page', () => {
  it('the statistics on the page equal the real traffic', async () => {
    const { page, problems } = await open('now')
    await textOf(page.locator('.headline')).toBe('No calls in the last minute.')
    expect(await call(`${diana.url}/hello`, 'ann', 12)).toEqual([...Array(5).fill(200), ...Array(7).fill(503)])
    await call(`${diana.url}/hello`, 'bob', 3)
    await call(`${diana.url}/other`, 'bob', 4)

    await textOf(page.locator('[data-sum=allowed]')).toBe('12')
    await textOf(page.locator('[data-sum=refused]')).toBe('7')
    await textOf(page.locator('.headline')).toBe('12 calls passed in the last minute; 7 were refused.')
    const hello = row(page, 'hello')
    await textOf(hello.locator('[data-count=allowed]')).toBe('8')
    await textOf(hello.locator('[data-count=refused]')).toBe('7')
    await textOf(row(page, 'everything').locator('[data-count=allowed]')).toBe('12')
    // of the fifteen calls to /hello, eight passed; the rule on trial would have let pass two of them
    await textOf(row(page, 'perhaps').locator('[data-count=shadowRefused]')).toBe('6')

    await page.getByRole('button', { name: 'hello' }).click()
    await textOf(page.locator('[data-sum=allowed]')).toBe('8')
    await page.getByRole('button', { name: 'Show all calls' }).click()
    await textOf(page.locator('[data-sum=allowed]')).toBe('12')
    expect(problems).toEqual([])
  })

  it('the statistics on the page include the time before it was opened', async () => {
    await call(`${diana.url}/hello`, 'ann', 6)
    await new Promise(resolve => setTimeout(resolve, 1500))
    const { page } = await open('now')
    await textOf(page.locator('[data-sum=allowed]')).toBe('5')
    await textOf(page.locator('[data-sum=refused]')).toBe('1')
  })

  it('the statistics on the page continue after a restart of the gateway, and the page reports the interruption', async () => {
    const { page, problems } = await open('now')
    await call(`${diana.url}/hello`, 'ann', 3)
    await textOf(page.locator('[data-sum=allowed]')).toBe('3')
    const ports = diana
    await diana.close()
    await page.getByText('The gateway does not answer.').waitFor(until)
    await textOf(page.locator('.pulse')).toBe('no answer')
    diana = await runGateway({ config, page: built.folder, ports })
    await textOf(page.locator('.pulse')).toBe('live')
    await page.getByText('The gateway does not answer.').waitFor({ state: 'detached', ...until })
    await call(`${diana.url}/hello`, 'ann', 2)
    await textOf(page.locator('[data-sum=allowed]')).toBe('5')
    // a browser itself notes each call that found nobody
    expect(problems.filter(text => !/net::ERR_/.test(text))).toEqual([])
  })
})

describe('overload', () => {
  it('the page shows the limit that an adaptive rule has found, its latency, and the calls shed by level', async () => {
    const adaptive = `${rules}  - { id: backend, match: { path: /work }, algorithm: adaptive, limit: 500 }\n`
    writeFileSync(config, adaptive)
    const { page, problems } = await open('now')
    const panel = page.getByRole('region', { name: 'Overload' })
    const workUntil = async (isDone: () => Promise<boolean>) => {
      const statuses: number[] = []
      while (!(await isDone())) {
        const rounds = await Promise.all(Array.from({ length: 8 }, () => call(`${diana.url}/work`, 'ann', 5)))
        statuses.push(...rounds.flat())
        // fewer than the rule for everything allows
        await new Promise(resolve => setTimeout(resolve, 50))
      }
      return statuses.filter(status => status === 503).length
    }
    const fact = (name: string) => panel.locator(`[data-fact=${name}] dd`)
    const isFound = async () =>
      (await panel.isVisible()) && /^[\d.]+ ms$/.test((await fact('latency').textContent()) ?? '')
    expect(await workUntil(isFound)).toBe(0)
    await textOf(fact('in-flight')).toBe('0')
    expect(Number(await fact('limit').textContent())).toBeLessThan(500)
    await panel.getByRole('img', { name: /latency over the last five minutes: backend/ }).waitFor(until)
    expect(await panel.locator('[data-level]').count()).toBe(0)

    const priority = 'priority:\n  - { match: { path: /work }, level: sheddable }\n'
    writeFileSync(config, `${adaptive}${priority}overload: { eventLoopUtilization: 0.5 }\n`)
    await panel.locator('[data-level=sheddable]').waitFor(until)
    const shedText = panel.locator('[data-level=sheddable] b')
    const shed = async () => Number((await shedText.textContent())?.replace(',', ''))
    // the gateway runs in this process
    const blocking = setInterval(() => block(25), 30)
    const refused = await workUntil(async () => (await shed()) > 0)
    clearInterval(blocking)
    await expect.poll(shed, until).toBe(refused)
    await textOf(panel.locator('[data-level=default] b')).toBe('0')
    expect(problems).toEqual([])
  })
})

describe('the rules', () => {
  it('the page shows limit, origin, state and load of each rule', async () => {
    const { page, problems } = await open('rules')
    const hello = row(page, 'hello')
    await textOf(hello.locator('.limit')).toBe('5 / hper account · sliding-window')
    await textOf(hello.locator('.origin')).toBe('filediana.yaml')
    await textOf(row(page, 'perhaps').locator('.badge')).toBe('shadow')
    const calling = setInterval(() => void call(`${diana.url}/hello`, 'ann'), 100)
    await expect.poll(() => hello.getByRole('meter').getAttribute('aria-valuenow'), until).toBe('100')
    clearInterval(calling)
    await page.getByRole('button', { name: 'hello' }).click()
    const details = page.getByRole('region', { name: 'Rule hello' })
    await details.waitFor(until)
    expect(await details.textContent()).toContain('path /hello')
    expect(problems).toEqual([])
  })

  it('a change of a rule is tried in shadow beside the real rule, compared, put in force or discarded', async () => {
    const { page, problems } = await open('rules/hello')
    await page.getByRole('button', { name: 'Try a change in shadow' }).click(until)
    await page.getByRole('textbox', { name: /Change the rule/ }).fill('id: hello\nby: account\nlimit: 2/h\n')
    await page.getByRole('button', { name: 'Start the trial' }).click()
    await page.getByText('A trial of this rule is running').waitFor(until)
    expect(await call(`${diana.url}/hello`, 'cleo', 4)).toEqual([200, 200, 200, 200])
    await page.getByRole('link', { name: 'Now', exact: true }).click()
    await textOf(row(page, 'hello~trial').locator('[data-count=shadowRefused]')).toBe('2')
    await page.goto(`${diana.admin}/#/rules/hello`)
    // the rule and the candidate beside each other, over the same seconds
    await textOf(page.getByRole('region', { name: 'In force' }).locator('[data-fact=refused] dd')).toBe('0 (0%)')
    await textOf(page.getByRole('region', { name: 'Candidate' }).locator('[data-fact=refused] dd')).toBe('2 (50%)')
    await page.getByRole('button', { name: 'Put in force' }).click(until)
    await page.getByText('The candidate is in force.').waitFor(until)
    await page.getByText('A trial of this rule is running').waitFor({ state: 'detached', ...until })
    expect(await call(`${diana.url}/hello`, 'dora', 3)).toEqual([200, 200, 503])
    expect(readFileSync(config, 'utf8')).toBe(
      rules.replace(/ {2}- id: hello[\s\S]*?5\/h/, '  - id: hello\n    by: account\n    limit: 2/h'),
    )
    // another one, which is discarded
    await page.getByRole('button', { name: 'Try a change in shadow' }).click(until)
    await page.getByRole('button', { name: 'Start the trial' }).click(until)
    await page.getByRole('button', { name: 'Discard' }).click(until)
    await page.getByText('The candidate is discarded.').waitFor(until)
    await page.getByText('A trial of this rule is running').waitFor({ state: 'detached', ...until })
    expect(problems).toEqual([])
  })
})

describe('the editor', () => {
  it('a rule edited there is enforced at the next call, survives a restart, and the rest of the file stays', async () => {
    await call(`${diana.url}/hello`, 'dan', 1)
    const { page, problems } = await open('rules/hello')
    await page.getByRole('button', { name: 'Edit this rule' }).click(until)
    await write(page, rules.replace('5/h', '2/h'))
    await page.getByText('No mistakes').waitFor(until)
    await page.getByRole('button', { name: 'Review and save…' }).click(until)
    const sheet = page.getByRole('dialog')
    await sheet.locator('.cm-deletedChunk').waitFor(until)
    expect(await sheet.locator('.cm-deletedChunk').textContent()).toContain('limit: 5/h')
    expect(await sheet.locator('.cm-changedLine').textContent()).toContain('limit: 2/h')
    await sheet.getByText('calls replayed').or(sheet.getByText('no traffic')).waitFor(until)
    await page.getByRole('button', { name: 'Apply' }).click()
    await page.getByText('Applied.', { exact: true }).waitFor(until)

    expect(await call(`${diana.url}/hello`, 'eve', 3)).toEqual([200, 200, 503])
    expect(readFileSync(config, 'utf8')).toBe(rules.replace('5/h', '2/h'))
    expect(problems).toEqual([])
    await diana.close()
    diana = await runGateway({ config, page: built.folder })
    expect(await call(`${diana.url}/hello`, 'eve', 3)).toEqual([200, 200, 503])
  })

  it('the editor previews what a change would have done to the traffic of the last minutes', async () => {
    await call(`${diana.url}/hello`, 'ann', 5)
    const { page } = await open('editor')
    await write(page, rules.replace('5/h', '3/h'))
    await page.getByRole('button', { name: 'Review and save…' }).click(until)
    const effect = page.getByRole('dialog').getByRole('row', { name: /^hello/ })
    await textOf(effect).toBe('hello02+2')
  })

  it('the editor replays an uploaded log with the same plots as the page of diana replay', async () => {
    const { page, problems } = await open('editor')
    await write(page, rules.replace('5/h', '3/h'))
    await page.getByRole('button', { name: 'Review and save…' }).click(until)
    const sheet = page.getByRole('dialog')
    const lines = Array.from({ length: 9 }, (_unused, second) => {
      return `203.0.113.9 - - [16/Nov/2026:08:00:0${second} +0000] "GET /hello HTTP/1.1" 200 1 "-" "agent"`
    })
    const log = { name: 'access.log', mimeType: 'text/plain', buffer: Buffer.from(lines.join('\n')) }
    await sheet.locator('input[type=file]').setInputFiles(log)
    await textOf(sheet.locator('.replay-log')).toContain('9 lines (combined), 0 unreadable.')
    await sheet.locator('.replay-log summary').first().click()
    expect(await sheet.locator('.replay-log details[open] svg.plot').count()).toBeGreaterThanOrEqual(1)
    await sheet.getByRole('button', { name: 'Use the gateway’s own access log' }).click()
    await textOf(sheet.locator('.replay-log [role=alert]')).toContain('writes no access log to a file')
    expect(problems.filter(problem => !problem.includes('422'))).toEqual([])
  })

  it('a bad edit is refused with its line, and nothing is saved', async () => {
    const { page, problems } = await open('editor')
    await write(page, rules.replace('5/h', '5/hour'))
    const list = page.locator('.mistakes')
    await textOf(list).toContain('1 mistake')
    await textOf(list.locator('li')).toMatch(/^line 10 hello .*5\/hour.*5\/h/)
    await page.locator('.cm-lintRange-error').waitFor(until)
    expect(await page.getByRole('button', { name: 'Review and save…' }).isDisabled()).toBe(true)
    await list.getByRole('button', { name: 'line 10' }).click()
    expect(readFileSync(config, 'utf8')).toBe(rules)
    expect(problems).toEqual([])
  })

  it('of two people who edit the same rules, the second is notified and loses nothing', async () => {
    const [first, second] = [(await open('editor')).page, (await open('editor')).page]
    await write(second, rules.replace('1000/s', '900/s'))
    await write(first, rules.replace('5/h', '2/h'))
    await save(first)
    await first.getByText('Applied.', { exact: true }).waitFor(until)
    await save(second)
    await second.getByText('These rules were changed by another operator').waitFor(until)
    expect(readFileSync(config, 'utf8')).toBe(rules.replace('5/h', '2/h'))
    const sheet = second.getByRole('dialog')
    expect(await sheet.locator('.cm-deletedChunk').allTextContents()).toEqual(
      expect.arrayContaining([expect.stringContaining('1000/s'), expect.stringContaining('2/h')]),
    )
    await second.getByRole('button', { name: 'Apply mine on top of theirs' }).click()
    await second.getByRole('button', { name: 'Apply' }).click(until)
    await second.getByText('Applied.', { exact: true }).waitFor(until)
    // the changes of both, none overwritten
    expect(readFileSync(config, 'utf8')).toBe(rules.replace('1000/s', '900/s').replace('5/h', '2/h'))
    // the first, who has nothing unsaved, sees what is in force
    await textOf(first.locator('.code .cm-content')).toContain('900/s')
  })

  it('the editor completes options and values by the schema', async () => {
    const { page, problems } = await open('editor')
    await write(page, 'rules:\n  - id: a\n    limit: 5/s\n    whenF')
    await page.keyboard.press('Control+Space')
    await page.locator('.cm-tooltip-autocomplete').getByText('whenFull').click(until)
    await textOf(page.locator('.code .cm-content')).toContain('whenFull: ')
    await page.keyboard.press('Control+Space')
    await page.locator('.cm-tooltip-autocomplete').getByText('shadow').waitFor(until)
    expect(problems).toEqual([])
  })

  it('the editor keeps a draft while another view is open', async () => {
    const { page } = await open('editor')
    await write(page, rules.replace('5/h', '4/h'))
    await page.getByRole('link', { name: 'Rules' }).click()
    await page.getByRole('link', { name: 'Editor' }).click()
    await textOf(page.locator('.code .cm-content')).toContain('4/h')
    await page.getByRole('button', { name: 'Undo all changes' }).click(until)
    await textOf(page.locator('.code .cm-content')).toContain('5/h')
  })
})

describe('explain', () => {
  it('the explain view shows the decision of each rule for a pasted curl command, and counts nothing', async () => {
    await call(`${diana.url}/hello`, 'ann', 5)
    const { page, problems } = await open('explain')
    await page.getByLabel('Request').fill(`curl -H 'x-account-id: ann' ${diana.url}/hello`)
    await page.getByRole('button', { name: 'Explain' }).click()
    await textOf(page.locator('.verdict')).toContain('This call would be refused by hello.')
    expect(await page.locator('.met').textContent()).toContain('account = ann')
    await page.getByLabel('Request').fill(`GET /hello\nx-account-id: bob`)
    await page.getByRole('button', { name: 'Explain' }).click()
    await textOf(page.locator('.verdict')).toContain('This call would pass.')
    expect(problems).toEqual([])
  })
})

describe('callers', () => {
  it('callers are reset, blocked and unblocked while their names are hidden', async () => {
    await diana.close()
    writeFileSync(config, rules.replace('limit: 5/h', 'limit: 5/h\n    block: manual'))
    diana = await runGateway({ config, page: built.folder })
    const asAnn = () => call(`${diana.url}/hello`, 'ann')
    await call(`${diana.url}/hello`, 'ann', 6)
    const { page, problems } = await open('callers')
    await page.getByLabel('rule', { exact: true }).selectOption('hello')
    const ann = page.locator('.callers .rows [role=row]').filter({ has: page.getByRole('link', { name: 'hello' }) })
    await ann.getByRole('button', { name: 'Reset' }).click(until)
    await page.locator('.said').getByText('is reset.').waitFor(until)
    expect(await asAnn()).toEqual([200])
    await ann.getByRole('button', { name: 'Block…' }).click(until)
    await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click(until)
    await page.locator('.said').getByText('is blocked.').waitFor(until)
    expect(await asAnn()).toEqual([503])
    await ann.getByText('blocked until').waitFor(until)
    await page.getByRole('button', { name: 'Unblock' }).click(until)
    await page.getByText('No caller is blocked.').waitFor(until)
    expect(await asAnn()).toEqual([200])
    expect(problems).toEqual([])
  })

  const hostile = [
    '<script>document.title="owned"</script><img src=x onerror=alert(1)>',
    `long-${'x'.repeat(9000)}`,
    'bell\u0007 escape\u001b[31m turned\u202e',
  ]

  it('callers with hostile names are shown as text', async () => {
    for (const name of hostile) {
      const url = `${diana.url}/hello?account=${encodeURIComponent(name)}`
      for (let turn = 0; turn < 6; turn++) await (await fetch(url)).arrayBuffer()
    }
    const { page, problems } = await open('callers')
    await page.getByLabel('Show', { exact: true }).selectOption('refused callers')
    await expect.poll(() => page.locator('.callers .rows [role=row]').count(), until).toBe(3)
    expect(await page.locator('.callers').textContent()).not.toContain('script')
    await page.getByRole('button', { name: 'Show names' }).click()
    await page.getByText('<script>document.title').waitFor(until)
    const told = (await page.locator('.callers .rows .key').allTextContents()).join('\n')
    expect(told).toContain('<img src=x onerror=alert(1)>')
    expect(told).toContain('turned\\u{202e}')
    for (const unseen of ['\u0007', '\u001b', '\u202e']) expect(told).not.toContain(unseen)
    expect(Math.max(...told.split('\n').map(line => line.length))).toBeLessThan(200)
    expect(await page.title()).toBe('Callers · Diana')
    expect(await page.locator('.callers img, .callers script').count()).toBe(0)
    expect(problems).toEqual([])
  })
})
