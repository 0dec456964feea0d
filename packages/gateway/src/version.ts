import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of this package: the nearest one above with a package.json, wherever the build has put this file. */
export const packageFolder: string = nearestPackage(dirname(fileURLToPath(import.meta.url)))

/** The version of Diana. */
export const version: string = (
  JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as { version: string }
).version

function nearestPackage(folder: string): string {
  const above = dirname(folder)
  return above === folder || existsSync(join(folder, 'package.json')) ? folder : nearestPackage(above)
}
