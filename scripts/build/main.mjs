// Writes the packages as they are published into build/.
import { buildPackages } from './build-packages.mjs'

await buildPackages()
