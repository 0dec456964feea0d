import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { installPackages } from './packages.mjs'
import { buildPage } from './page.mjs'
import { root, run } from './run.mjs'
import { writeLua } from './write-lua.mjs'

const main = join(root, 'packages/gateway/dist/cli/main.js')

/** Installs, builds and starts the gateway with the arguments of `npm start -- …`. */
export default async function startGateway() {
  await installPackages()
  console.log('building…')
  writeLua()
  await Promise.all([buildCode(), buildPage()])
  // in this very process, so that signals, terminal and exit code are the gateway's own
  process.argv = [process.execPath, main, 'start', ...process.argv.slice(2)]
  await import(pathToFileURL(main).href)
}

async function buildCode() {
  const { code, output } = await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'])
  if (code !== 0) {
    const where = output.split('\n').find(line => line.includes('error')) ?? `exit code ${code}`
    throw new Error(
      `Diana could not be built (${where.trim()}): run \`npm run build\` to see every mistake and mend them, then run the same command again.`,
    )
  }
  if (!existsSync(main)) {
    throw new Error(`The build left no ${main}: run \`npx tsc -b --force\`, then run the same command again.`)
  }
}
