import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './run.mjs'

const page = join(root, 'packages/dashboard')
const built = join(page, 'dist/index.html')
const made = ['src', 'public', 'index.html', 'vite.config.ts', 'package.json', '../../package-lock.json']

/** Builds the dashboard, unless what is built is newer than all it is made of. */
export async function buildPage() {
  if (madeAt(built) > Math.max(...made.map(part => madeAt(join(page, part))))) return
  const { code, output } = await run(process.execPath, [join(root, 'node_modules/vite/bin/vite.js'), 'build', page])
  if (code === 0) return
  const where = output.split('\n').find(line => /error/i.test(line)) ?? `exit code ${code}`
  throw new Error(
    `The dashboard could not be built (${where.trim()}): run \`npm run build\` to see every mistake and mend them, then run the same command again.`,
  )
}

/** When a file, or the newest in a folder, was last written; 0 where there is none. */
function madeAt(path) {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return 0
  if (!stats.isDirectory()) return stats.mtimeMs
  return Math.max(stats.mtimeMs, ...readdirSync(path).map(name => madeAt(join(path, name))))
}
