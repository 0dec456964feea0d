import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runNpm } from './run.mjs'

const NETWORK_FAULT = /^(EAI_AGAIN|ENOTFOUND|ECONN\w+|ENET\w+|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E5\d\d)$/

// dev packages even under NODE_ENV=production, since they build Diana; short pauses, so that no network is soon told
const INSTALL =
  'ci --include=dev --include=optional --fetch-retries=3 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=8000'

/** Installs the npm packages of the lock file, unless they are there already. */
export async function installPackages() {
  await installFolder('.', 'packages', [])
}

/** Installs the runtimes that only tests start. Their programs are in the packages of the platform: no script is needed. */
export async function installRuntimes() {
  await installFolder('test/runtimes', 'Bun, Deno and workerd', ['--ignore-scripts'])
}

async function installFolder(folder, what, options) {
  if (packagesAreCurrent(folder)) return
  console.log(`installing ${what} (first run, or the lock file changed)…`)
  const { code, output } = await runNpm([...INSTALL.split(' '), ...options], { cwd: join(root, folder) })
  if (code !== 0) throw new Error(failureText(folder, code, output))
}

// npm writes node_modules/.package-lock.json last, so what it lists is really there
function packagesAreCurrent(folder) {
  const wanted = readLock(join(folder, 'package-lock.json'))
  const installed = readLock(join(folder, 'node_modules/.package-lock.json'))
  if (!wanted || !installed) return false
  return Object.entries(wanted).every(
    ([path, { version, integrity, optional }]) =>
      path === '' ||
      (optional && !installed[path]) ||
      (installed[path]?.version === version && installed[path].integrity === integrity),
  )
}

function readLock(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8')).packages
  } catch {
    return undefined
  }
}

function failureText(folder, code, output) {
  const reason = /npm (?:error|ERR!) code (\S+)/.exec(output)?.[1] ?? `exit code ${code}`
  const remedy = NETWORK_FAULT.test(reason)
    ? 'check that this machine reaches the npm registry'
    : `run \`npm ci\` in ${join(root, folder)} to see why`
  return `The npm packages could not be installed (${reason}): ${remedy}, then run the same command again.`
}
