// npm run write -- screenshots: every view of the dashboard, in both themes and both languages, on a gateway that really runs.
// It takes about eight minutes, five of them to let the figures fill their chart. `--warm 100` is quicker.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { createDemoService, demoRules } from '../packages/gateway/dist/demo/demo.js'
import { startDemoTraffic } from '../packages/gateway/dist/demo/demo-traffic.js'
import { freePort } from '../test/helpers/free-port.mjs'
import { findProgram } from './programs.mjs'
import { root } from './run.mjs'

const { values } = parseArgs({ options: { warm: { type: 'string', default: '300' } } })
const folder = mkdtempSync(join(tmpdir(), 'diana-screenshots-'))
const images = join(root, 'docs/images')
const children = []

/** Where a picture is taken, if not on the view of its name. */
const places = { review: 'editor', trial: 'rules/hello', form: 'rules' }

/** What is done on a view before its picture is taken, by the buttons' order rather than their words. */
const views = {
  now: async () => {},
  rules: async () => {},
  form: async page => {
    await page.locator('button.add').click()
    await page.locator('.templates button').first().click()
    await page.locator('.rule-form').waitFor()
  },
  callers: async page => page.locator('.callers').first().waitFor(),
  refusals: async page => page.locator('.refusals').first().waitFor(),
  trial: async page => {
    await page.locator('.details').waitFor()
    // time to hear of a trial that runs already
    await pause(1500)
    if ((await page.locator('.sides').count()) === 0) {
      await page.locator('.details .actions button[aria-expanded]').click()
      const text = page.locator('.trial textarea')
      await text.fill((await text.inputValue()).replace('5/10s', '3/10s'))
      await page.locator('.trial button').click()
    }
    await page.locator('.sides').waitFor()
    await pause(4000)
    await page.locator('.sides').scrollIntoViewIfNeeded()
  },
  fleet: async () => {},
  services: async page => page.locator('.services [data-address]').first().waitFor(),
  explain: async page => {
    await page.locator('textarea').fill("curl http://127.0.0.1:8080/hello -H 'x-account-id: luna'")
    await page.locator('.ask button').click()
    await page.locator('.met li').first().waitFor()
  },
  editor: async page => page.locator('.cm-content').waitFor(),
  review: async page => {
    const text = readFileSync(join(folder, 'diana.yaml'), 'utf8')
    await page.locator('.cm-content').click()
    await page.keyboard.press('Control+A')
    await page.keyboard.insertText(text.replace('5/10s', '8/10s'))
    await page.locator('.context .actions button').first().click()
    await page.locator('.sheet .foretold tbody').waitFor()
  },
}

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const { child } of children) child.kill()
    rmSync(folder, { recursive: true })
    process.exit(1)
  })
}

/** Pictures of one moment, in English only. */
const moments = {
  /** While Redis is away. */
  outage: { place: 'fleet', before: started => started.stopRedis() },
  /** A gateway with two workers. */
  workers: { place: 'services', before: started => started.startWorkers() },
}

try {
  await take(await startEverything())
} finally {
  for (const { child } of children) child.kill()
  await Promise.all(children.map(({ ended }) => ended))
  rmSync(folder, { recursive: true })
}
process.exit()

async function startEverything() {
  const redisPort = await freePort()
  const redis = () => start('redis-server', ['--port', `${redisPort}`, '--bind', '127.0.0.1', '--save', ''])
  const firstRedis = redis()
  firstRedis.stdout.resume()
  const config = join(folder, 'diana.yaml')
  const store = `store:\n  redis: redis://127.0.0.1:${redisPort}\n\n`
  const text = readFileSync(demoRules, 'utf8').replace(/^# yaml-language-server.*\n/, '')
  writeFileSync(config, text.replace(/^# Who calls/m, `${store}# Who calls`))
  const upstream = await createDemoService().listen({ port: 0, host: '127.0.0.1' })
  const args = ['--config', config, '--upstream', upstream, '--port', '0', '--admin-port', '0']
  const startGateway = async (...more) => {
    const diana = start(process.execPath, [join(root, 'packages/gateway/bin/diana.mjs'), 'start', ...args, ...more])
    return await untilPrinted(diana, /listens on (\S+)[\s\S]*Dashboard: (\S+)/)
  }
  const printed = await startGateway()
  for (let crowd = 0; crowd < 3; crowd++) startDemoTraffic(printed[1])

  // an outage to tell of
  const warmMs = Number(values.warm) * 1000
  await pause(warmMs / 2)
  firstRedis.kill('SIGKILL')
  await pause(4000)
  const secondRedis = redis()
  secondRedis.stdout.resume()
  await pause(warmMs / 2)
  return {
    dashboard: printed[2],
    async stopRedis() {
      secondRedis.kill('SIGKILL')
      await pause(6000)
      return printed[2]
    },
    async startWorkers() {
      redis().stdout.resume()
      const withWorkers = await startGateway('--workers', '2')
      startDemoTraffic(withWorkers[1])
      await pause(20_000)
      return withWorkers[2]
    },
  }
}

async function take(started) {
  const { dashboard } = started
  const browser = await chromium.launch({
    executablePath: findProgram('chromium', process.env.PATH),
    args: ['--no-sandbox'],
  })
  for (const theme of ['light', 'dark']) {
    for (const language of ['en', 'zh']) {
      const locale = language === 'zh' ? 'zh-CN' : 'en-GB'
      const page = await browser.newPage({ colorScheme: theme, locale, viewport: { width: 1200, height: 820 } })
      for (const [view, prepare] of Object.entries(views)) {
        await page.goto(`${dashboard}/#/${places[view] ?? view}`)
        await page.locator('.pulse[data-state=live]').waitFor()
        await prepare(page)
        await pause(1500)
        await photograph(page, join(images, `dashboard-${view}-${theme}-${language}.webp`))
      }
      await page.close({ runBeforeUnload: false })
    }
  }
  const phone = await browser.newPage({ viewport: { width: 390, height: 844 }, locale: 'en-GB', deviceScaleFactor: 2 })
  await phone.goto(dashboard)
  await pause(2500)
  await photograph(phone, join(images, 'dashboard-phone.webp'))
  for (const [name, { place, before }] of Object.entries(moments)) {
    const address = await before(started)
    for (const theme of ['light', 'dark']) {
      const page = await browser.newPage({
        colorScheme: theme,
        locale: 'en-GB',
        viewport: { width: 1200, height: 820 },
      })
      await page.goto(`${address}/#/${place}`)
      await page.locator('.pulse[data-state=live]').waitFor()
      await pause(2500)
      await photograph(page, join(images, `dashboard-${name}-${theme}-en.webp`))
      await page.close()
    }
  }
  await browser.close()
}

/** Playwright writes no webp, which is a third of a png; Chromium itself does. */
async function photograph(page, file) {
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 82 })
  writeFileSync(file, Buffer.from(data, 'base64'))
  await session.detach()
}

function start(command, args) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push({ child, ended: once(child, 'exit') })
  return child
}

function untilPrinted(child, pattern) {
  return new Promise((resolve, reject) => {
    let text = ''
    child.stdout.setEncoding('utf8').on('data', chunk => {
      text = (text + chunk).slice(-10_000)
      const match = pattern.exec(text)
      if (match) resolve(match)
    })
    child.once('exit', () => reject(new Error(`it ended before it was ready: ${text}`)))
  })
}
