import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'diana-limiter'
import { type Browser, type BrowserContextOptions, chromium, type Locator, type Page } from 'playwright-core'
import { expect } from 'vitest'
import { type AdminOptions, createAdmin } from '../../packages/gateway/src/admin/server/create-admin.ts'
import { createGateway } from '../../packages/gateway/src/gateway.ts'
import { findProgram } from '../../scripts/programs.mjs'
import { buildPage } from './built-page.ts'

/** How long the page may take to show something. */
export const until = { timeout: 15_000 }

/** The text of an element, awaited. */
export const textOf = (locator: Locator) => expect.poll(() => locator.textContent(), until)

export function openBrowser(): Promise<Browser> {
  const path = process.env.PATH ?? ''
  const executablePath = findProgram('chromium-headless-shell', path) ?? findProgram('chromium', path)
  if (executablePath === undefined) throw new Error('chromium is not on the PATH: npm test installs it')
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}

/** A tab, its errors and warnings, and its requests to other origins. */
export interface Tab {
  readonly page: Page
  /** Errors in the console, uncaught exceptions, and requests to another host. */
  readonly problems: string[]
  close(): Promise<void>
}

export async function openTab(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Tab> {
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 }, ...options })
  const page = await context.newPage()
  const problems: string[] = []
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') problems.push(message.text())
  })
  page.on('pageerror', error => problems.push(String(error)))
  page.on('request', request => {
    if (new URL(request.url()).origin !== new URL(url).origin) problems.push(`requested ${request.url()}`)
  })
  await page.goto(url)
  return { page, problems, close: () => context.close() }
}

export interface Running {
  /** Where calls go. */
  readonly url: string
  /** Where operators look. */
  readonly admin: string
  close(): Promise<void>
}

interface RunOptions {
  readonly config: string
  readonly page: string
  readonly ports?: { readonly url: string; readonly admin: string }
  readonly token?: string
  readonly identity?: AdminOptions['identity']
  /** A token that may only read. */
  readonly viewToken?: string
}

/** A gateway with its admin server; `ports` are those of an earlier one, for a restart. */
export async function runGateway({ config, page, ports, token, viewToken, identity }: RunOptions): Promise<Running> {
  const service = createServer((_request, response) => response.end('served'))
  const upstream = await listen(service)
  const limiter = await createLimiter({ config })
  const gateway = await createGateway({ limiter, upstream })
  const admin = await createAdmin({ limiter, host: '127.0.0.1', page, token, viewToken, identity })
  const on = (address: string | undefined) => ({ host: '127.0.0.1', port: Number(new URL(address ?? 'x://x:0').port) })
  const adminAddress = await admin.listen(on(ports?.admin))
  const url = await gateway.listen(on(ports?.url))
  return {
    url,
    admin: adminAddress,
    async close() {
      await gateway.close()
      await admin.close()
      await limiter.close()
      service.closeAllConnections()
      service.close()
    },
  }
}

/** A gateway with its rules in a file, the built page, and a browser to look at it. */
export interface Stage {
  readonly browser: Browser
  readonly built: string
  /** The path of the rule file. */
  readonly config: string
  readonly diana: Running
  close(): Promise<void>
}

export async function openStage(rules: string): Promise<Stage> {
  const built = await buildPage()
  const browser = await openBrowser()
  const folder = mkdtempSync(join(tmpdir(), 'diana-page-'))
  const config = join(folder, 'diana.yaml')
  writeFileSync(config, rules)
  const diana = await runGateway({ config, page: built })
  return {
    ...{ browser, built, config, diana },
    async close() {
      await browser.close()
      await diana.close()
      rmSync(folder, { recursive: true })
    },
  }
}

export async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Calls as an account, one after the other; answers the statuses. */
export async function call(url: string, account: string, times = 1): Promise<number[]> {
  const statuses: number[] = []
  for (let turn = 0; turn < times; turn++) {
    const response = await fetch(url, { headers: { 'x-account-id': account } })
    await response.arrayBuffer()
    statuses.push(response.status)
  }
  return statuses
}

/** Replaces what stands in the editor. */
export async function write(page: Page, text: string): Promise<void> {
  await page.locator('.code .cm-content').first().click()
  await page.keyboard.press('Control+A')
  await page.keyboard.insertText(text)
}
