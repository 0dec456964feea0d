import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { root } from '../run.mjs'
import { entriesOf } from './entries.mjs'
import { Layers, layersOf } from './layers.mjs'
import { Licenses } from './licenses.mjs'
import { isWritten, publishedManifest } from './manifest.mjs'
import { loadDirectly, passOn, withoutPaths, withoutRuntime } from './tidy.mjs'

/** Writes a package as it is published into a folder: a few files, with what they use of the packages that they need for the build. */
export async function buildPackage(folder, target) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const source = join(root, folder)
  const entries = entriesOf(source, manifest)
  const licenses = new Licenses()
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  const options = optionsOf(manifest, source)
  licenses.addAll(
    await writeModules({ ...options, input: { ...entries.public, ...entries.programs } }, manifest, target),
  )
  await writeTypes({ ...options, input: entries.public }, source, target)
  for (const name of ['README.md', 'LICENSE', ...manifest.files.filter(name => !isWritten(name))]) {
    if (existsSync(join(source, name))) cpSync(join(source, name), join(target, name), { recursive: true })
  }
  licenses.write(join(target, 'THIRD-PARTY-LICENSES.txt'))
  writeFileSync(join(target, 'package.json'), `${JSON.stringify(publishedManifest(manifest, entries), null, '\t')}\n`)
}

async function writeModules(options, { name }, target) {
  const layers = new Layers(layersOf[name])
  const bundle = await rolldown({
    ...options,
    plugins: [layers.plugin, withoutRuntime, passOn, loadDirectly, withoutPaths],
  })
  const { output } = await bundle.write({
    dir: join(target, 'dist'),
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    codeSplitting: { groups: layers.groups },
    // readable: users read it in stack traces; what the comments say is in the types
    minify: false,
    comments: { legal: true, annotation: true, jsdoc: false },
  })
  await bundle.close()
  assertNames(
    output,
    Object.keys(options.input).map(name => `${name}.js`),
  )
  return output
}

/** A part that has the name of an entry would take its file. */
function assertNames(output, names) {
  const entries = output.filter(({ isEntry }) => isEntry).map(({ fileName }) => fileName)
  const lost = names.filter(name => !entries.includes(name))
  if (lost.length > 0) throw new Error(`the build left no ${lost.join(', ')}: entries are ${entries.join(', ')}`)
}

async function writeTypes(options, source, target) {
  const declarations = dts({
    generator: 'oxc',
    oxc: { stripInternal: true },
    emitDtsOnly: true,
    tsconfig: join(source, 'tsconfig.json'),
  })
  // the types of other packages stay theirs
  const external = id => !/^[./]/.test(id) && !Object.values(options.input).includes(id)
  const bundle = await rolldown({ ...options, external, plugins: [declarations, withoutRuntime] })
  const { output } = await bundle.write({
    dir: join(target, 'dist'),
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    // what several entries share is one file: some fifty small ones would take twice the space
    codeSplitting: { groups: [{ name: 'shared.d', test: () => true, minShareCount: 2 }] },
  })
  await bundle.close()
  assertNames(
    output,
    Object.keys(options.input).map(name => `${name}.d.ts`),
  )
}

/** What the code is made of: the sources and all that no application has to install. */
function optionsOf({ dependencies = {}, peerDependencies = {}, bin }, source) {
  // a peer of a program is one for its types only
  const installed = [...Object.keys(dependencies), ...(bin ? [] : Object.keys(peerDependencies))]
  return {
    cwd: root,
    platform: 'node',
    external: id =>
      id.startsWith('node:') ||
      builtinModules.includes(id) ||
      installed.some(name => id === name || id.startsWith(`${name}/`)),
    // the ES modules of yaml, of which unused parts can be left out
    resolve: { alias: { yaml: join(root, 'node_modules/yaml/browser/dist/index.js') } },
    tsconfig: join(source, 'tsconfig.json'),
    treeshake: { moduleSideEffects: id => !/\/packages\/(?:limiter|gateway)\/src\/(?!cli\/main|.*-main)/.test(id) },
    checks: { pluginTimings: false },
    onLog(level, log) {
      if (level === 'warn' && !isKnown(log)) throw new Error(`rolldown: ${log.message}`)
    },
  }
}

/** Warnings about code of other packages, which are right about it and change nothing. */
function isKnown({ code, id = '', loc }) {
  return /node_modules/.test(`${id} ${loc?.file ?? ''}`) || code === 'INEFFECTIVE_DYNAMIC_IMPORT' || code === 'EVAL'
}
