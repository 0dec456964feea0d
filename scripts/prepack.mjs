// Builds the page of the dashboard before npm packs it. The other packages are packed as they are built, by `npm run release`.
import { basename } from 'node:path'
import { buildPage } from './page.mjs'

const folder = basename(process.cwd())

if (folder === 'dashboard') await buildPage()
else {
  console.error(
    `packages/${folder} is the source of the package: pack build/diana-${folder}, which npm run build writes`,
  )
  process.exitCode = 1
}
