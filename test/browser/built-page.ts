import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

const root = fileURLToPath(new URL('../..', import.meta.url))
const LOCK_MS = 120_000

/**
 * The page, built from its sources: once for all tests that see the same sources, into a folder that is named by them. Another
 * process that builds it already is waited for.
 */
export async function buildPage(): Promise<string> {
  const folder = join(root, 'node_modules/.cache/diana-page', hashOfSources())
  const lock = `${folder}.lock`
  mkdirSync(dirname(folder), { recursive: true })
  while (!existsSync(folder)) {
    if (isTaken(lock)) {
      await pause(100)
      continue
    }
    try {
      const fresh = mkdtempSync(`${folder}-`)
      await buildInto(fresh)
      renameSync(fresh, folder)
    } finally {
      rmSync(lock, { recursive: true })
    }
  }
  return folder
}

/** As it is published: vitest sets another NODE_ENV, with which the page is 2 kB larger. */
async function buildInto(outDir: string): Promise<void> {
  const before = process.env.NODE_ENV
  process.env.NODE_ENV = 'production'
  try {
    await build({
      root: join(root, 'packages/dashboard'),
      logLevel: 'error',
      build: { outDir, emptyOutDir: true },
    })
  } finally {
    process.env.NODE_ENV = before
  }
}

/** Whether another process has the lock; otherwise it is taken. One of a process that was killed is not waited for. */
function isTaken(lock: string): boolean {
  try {
    mkdirSync(lock)
    return false
  } catch {
    const since = statSync(lock, { throwIfNoEntry: false })?.mtimeMs
    if (since !== undefined && Date.now() - since > LOCK_MS) rmSync(lock, { recursive: true, force: true })
    return true
  }
}

/** Of all files that the page may be made of. */
function hashOfSources(): string {
  const hash = createHash('sha256').update('production')
  for (const folder of ['packages/dashboard', 'packages/gateway/src', 'packages/limiter/src']) {
    const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    for (const file of files.sort()) {
      if (/(?:^|\/)(?:dist|node_modules)\/|\.test\.tsx?$/.test(file) || !/\.(?:tsx?|css|html|svg|json)$/.test(file))
        continue
      hash.update(`${folder}/${file}\0`).update(readFileSync(join(root, folder, file)))
    }
  }
  return hash
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
    .slice(0, 16)
}
