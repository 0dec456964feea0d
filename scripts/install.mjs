import { delimiter } from 'node:path'
import { installPackages, installRuntimes } from './packages.mjs'
import { installPrograms } from './programs.mjs'

/** Installs the npm packages and the system programs that the tests need; does nothing if all of them are there. */
export default async function install() {
  // servers such as nginx live in directories that are often on root's PATH only
  process.env.PATH = [process.env.PATH, '/usr/local/sbin', '/usr/sbin', '/sbin'].join(delimiter)
  console.log('== setup: npm packages, and programs such as redis-server and nginx')
  await installPackages()
  await installRuntimes()
  await installPrograms({ path: process.env.PATH, isRoot: process.getuid?.() === 0 })
}
