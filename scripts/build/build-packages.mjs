import { createHash } from 'node:crypto'
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { root } from '../run.mjs'
import { writeLua } from '../write-lua.mjs'
import { withDefinitions } from './definitions.mjs'

/** Where the built packages are, each in a folder of its name. */
export const built = join(root, 'build')

const packages = { 'diana-limiter': 'packages/limiter', 'diana-gateway': 'packages/gateway' }
const shared = ['scripts/build', 'package-lock.json', 'docs/diana.schema.json', 'tsconfig.base.json']

/** Builds the packages whose sources have changed; without a change it takes some hundredths of a second. */
export async function buildPackages() {
  writeLua()
  for (const [name, folder] of Object.entries(packages)) {
    const stamp = stampOf([folder, ...shared])
    const target = join(built, name)
    if (read(join(target, '.stamp')) === stamp) continue
    const { buildPackage } = await import('./build-package.mjs')
    // whole or not at all: a program may start meanwhile
    const next = join(built, `.${name}-${process.pid}`)
    if (name === 'diana-limiter') writeSchema(folder)
    await buildPackage(folder, next)
    writeFileSync(join(next, '.stamp'), stamp)
    rmSync(target, { recursive: true, force: true })
    renameSync(next, target)
    linkToEachOther(name)
  }
}

/** Editors of users find the schema in the package, without spaces and repetitions. */
function writeSchema(folder) {
  const schema = JSON.parse(readFileSync(join(root, 'docs/diana.schema.json'), 'utf8'))
  writeFileSync(join(root, folder, 'diana.schema.json'), `${JSON.stringify(withDefinitions(schema))}\n`)
}

/** The built packages find each other, not the sources. */
function linkToEachOther(name) {
  const modules = join(built, 'node_modules')
  mkdirSync(modules, { recursive: true })
  if (lstatSync(join(modules, name), { throwIfNoEntry: false })) return
  symlinkSync(join(built, name), join(modules, name), 'junction')
}

/** Changes when any file that a package is made of does. */
function stampOf(paths) {
  const hash = createHash('sha256')
  for (const path of paths) for (const file of filesIn(join(root, path))) hash.update(file)
  return hash.digest('hex')
}

function filesIn(path) {
  const stats = statSync(path)
  if (!stats.isDirectory()) return [`${path} ${stats.size} ${stats.mtimeMs}`]
  return readdirSync(path)
    .filter(name => !/\.test\.ts$|^(?:dist|node_modules|diana\.schema\.json)$/.test(name))
    .flatMap(name => filesIn(join(path, name)))
}

function read(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined
}
