import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root, runNpm } from './run.mjs'

const NETWORK_FAULT = /^(EAI_AGAIN|ENOTFOUND|ECONN\w+|ENET\w+|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|E5\d\d)$/

const RUNTIMES = 'test/runtimes'

// dev packages even under NODE_ENV=production, since they build Diana; short pauses, so that no network is soon told
const INSTALL =
  '--include=dev --include=optional --fetch-retries=3 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=8000'

/** Installs the npm packages of the lock file, unless they are there already. */
export async function installPackages() {
  if (packagesAreCurrent()) return
  console.log('installing packages (first run, or the lock file changed)…')
  await runInstall(['ci', ...INSTALL.split(' ')], '.')
}

/**
 * Installs the runtimes that only tests start. Their programs are in packages of the platform, so no script is needed; and not every
 * registry has those of all platforms, so there is no lock file: the versions are exact.
 */
export async function installRuntimes() {
  const { devDependencies = {} } = readJson(join(RUNTIMES, 'package.json')) ?? {}
  const installed = readLock(join(RUNTIMES, 'node_modules/.package-lock.json')) ?? {}
  const wanted = Object.entries(devDependencies)
  if (wanted.every(([name, version]) => installed[`node_modules/${name}`]?.version === version)) return
  console.log('installing Bun, Deno and workerd (first run, or their versions changed)…')
  await runInstall(['install', '--ignore-scripts', ...INSTALL.split(' ')], RUNTIMES)
}

async function runInstall(args, folder) {
  const { code, output } = await runNpm(args, { cwd: join(root, folder) })
  if (code !== 0) throw new Error(failureText(folder, code, output))
}

// npm writes node_modules/.package-lock.json last, so what it lists is really there
function packagesAreCurrent() {
  const wanted = readLock('package-lock.json')
  const installed = readLock('node_modules/.package-lock.json')
  if (!wanted || !installed) return false
  return Object.entries(wanted).every(
    ([path, { version, integrity, optional }]) =>
      path === '' ||
      (optional && !installed[path]) ||
      (installed[path]?.version === version && installed[path].integrity === integrity),
  )
}

function readLock(path) {
  return readJson(path)?.packages
}

function readJson(path) {
  try {
    return JSON.parse(readFileSync(join(root, path), 'utf8'))
  } catch {
    return undefined
  }
}

function failureText(folder, code, output) {
  const reason = /npm (?:error|ERR!) code (\S+)/.exec(output)?.[1] ?? `exit code ${code}`
  const remedy = NETWORK_FAULT.test(reason)
    ? 'check that this machine reaches the npm registry'
    : `run \`npm ${folder === '.' ? 'ci' : 'install'}\` in ${join(root, folder)} to see why`
  return `The npm packages could not be installed (${reason}): ${remedy}, then run the same command again.`
}
