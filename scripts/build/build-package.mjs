import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { root } from '../run.mjs'
import { entriesOf } from './entries.mjs'
import { Licenses } from './licenses.mjs'
import { publishedManifest } from './manifest.mjs'

/** Builds a package as it is published: a few files with what they use of their dependencies inside. */
export async function buildPackage(folder, target, { types = true } = {}) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const build = new PackageBuild({ folder, target, manifest })
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  await build.writeModules()
  if (build.hasCommonJs) await build.writeCommonJs()
  if (types) await build.writeTypes()
  build.writeRest()
}

class PackageBuild {
  #folder
  #target
  #manifest
  #entries
  #licenses = new Licenses()

  constructor({ folder, target, manifest }) {
    this.#folder = join(root, folder)
    this.#target = target
    this.#manifest = manifest
    this.#entries = entriesOf(this.#folder, manifest)
  }

  /** A library may be loaded by `require` where no ES module can be, as in Jest; a program is not. */
  get hasCommonJs() {
    return this.#manifest.bin === undefined
  }

  async writeModules() {
    const bundle = await rolldown(this.#options({ ...this.#entries.public, ...this.#entries.programs }))
    const { output } = await bundle.write({ ...this.#output('js'), format: 'esm', sourcemap: true })
    this.#licenses.addAll(output)
    await bundle.close()
  }

  async writeCommonJs() {
    const bundle = await rolldown(this.#options(this.#entries.public))
    await bundle.write({ ...this.#output('cjs'), format: 'cjs', exports: 'named' })
    await bundle.close()
  }

  async writeTypes() {
    const options = this.#options(this.#entries.public)
    const plugins = [dts({ generator: 'oxc', emitDtsOnly: true, tsconfig: join(this.#folder, 'tsconfig.json') })]
    const bundle = await rolldown({ ...options, plugins })
    const { output } = await bundle.write({ ...this.#output('js'), format: 'esm', chunkFileNames: '[name].js' })
    await bundle.close()
    return output
  }

  /** What stands beside the code. */
  writeRest() {
    const { files = [] } = this.#manifest
    for (const name of ['README.md', 'LICENSE', ...files.filter(name => !/^!|^(?:bin|dist)$/.test(name))]) {
      if (existsSync(join(this.#folder, name))) cpSync(join(this.#folder, name), join(this.#target, name), { recursive: true })
    }
    this.#licenses.write(join(this.#target, 'THIRD-PARTY-LICENSES.txt'))
    const manifest = publishedManifest(this.#manifest, this.#entries, this.#target)
    writeFileSync(join(this.#target, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  }

  #options(input) {
    const { dependencies = {}, peerDependencies = {} } = this.#manifest
    const external = [...Object.keys(dependencies), ...Object.keys(peerDependencies)]
    return {
      input,
      cwd: root,
      platform: 'node',
      external: id => builtinModules.includes(id) || id.startsWith('node:') || external.some(name => id === name || id.startsWith(`${name}/`)),
      tsconfig: join(this.#folder, 'tsconfig.json'),
      treeshake: { moduleSideEffects: id => !/\/packages\/[a-z]+\/src\//.test(id) },
      logLevel: 'warn',
      onLog(level, log, pass) {
        if (level === 'warn') throw new Error(`rolldown warns: ${log.message}`)
        pass(level, log)
      },
    }
  }

  #output(extension) {
    return {
      dir: join(this.#target, 'dist'),
      entryFileNames: `[name].${extension}`,
      chunkFileNames: `[name].${extension}`,
      minify: false,
      comments: { legal: true, annotation: true, jsdoc: false },
      hashCharacters: 'hex',
    }
  }
}
