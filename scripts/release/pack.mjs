import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackages, built } from '../build/build-packages.mjs'
import { root, runNpm } from '../run.mjs'

/** The folders of the packages that are published, a package after those that it depends on. */
export const published = ['packages/limiter', 'packages/dashboard', 'packages/gateway']

/** Packs the packages in these folders; resolves to a name, a version, a tarball and its list of files for each. */
export async function packPackages(folders, destination) {
  await buildPackages()
  const packed = []
  for (const folder of folders) {
    const { name, version } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    const path = existsSync(join(built, name)) ? join(built, name) : `./${folder}`
    const { code, output } = await runNpm(['pack', path, '--json', '--silent', '--pack-destination', destination])
    if (code !== 0) throw new Error(`npm could not pack ${folder}:\n${output}`)
    const tarball = join(destination, `${name}-${version}.tgz`)
    packed.push({ folder, name, version, tarball })
  }
  return packed
}
