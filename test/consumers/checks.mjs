import { cpSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { moreResolutions, resolutions } from './consumer.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const require = createRequire(import.meta.url)
const printed = '200 200 503, 0 mistakes'

/** What an application does with the packed library: each check throws or resolves to what is wrong, '' if nothing is. */
export const checks = [
  { title: 'import', run: async consumer => compare(await consumer.run('program.mjs', consumer.ruleFile), printed) },
  {
    title: 'require',
    run: async consumer => compare(await consumer.run('program.cjs', consumer.ruleFile), 'true true false'),
  },
  ...[...resolutions, ...moreResolutions].map(resolution => compiles('TypeScript 7', '../../node_modules', resolution)),
  ...[...resolutions, ...moreResolutions]
    // TypeScript 5 knows this pair only since its successor
    .filter(({ options }) => options.module !== 'commonjs')
    .map(resolution => compiles('TypeScript 5.9', 'node_modules', resolution)),
  compiles('TypeScript 5.9', 'node_modules', {
    title: 'CommonJS with module commonjs alone, as older Nest projects have it',
    extension: '.ts',
    options: { module: 'commonjs' },
  }),
  { title: 'esbuild, ES module with yaml outside', run: esbuild('esm', ['yaml']) },
  { title: 'esbuild, CommonJS', run: esbuild('cjs', []) },
  { title: 'webpack, ES module', run: webpack({ module: true, extension: 'mjs' }) },
  { title: 'webpack, CommonJS', run: webpack({ module: false, extension: 'cjs' }) },
  {
    title: 'Jest, tests that are ES modules, with --experimental-vm-modules',
    run: jest('import.test.mjs', { testMatch: ['**/*.test.mjs'] }, '--experimental-vm-modules'),
  },
  {
    title: 'Jest, tests that are CommonJS, with @swc/jest for the library',
    run: jest('require.test.js', {
      transform: { '\\.js$': require.resolve('@swc/jest') },
      transformIgnorePatterns: ['/node_modules/(?!diana-limiter/)'],
    }),
  },
]

function compare(actual, expected) {
  return actual === expected ? '' : `printed ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`
}

function compiles(name, modules, { title, extension, options }) {
  const compiler = join(here, modules, 'typescript/bin/tsc')
  return { title: `${name}, types from ${title}`, run: consumer => consumer.compile(compiler, extension, options) }
}

function esbuild(format, external) {
  return async consumer => {
    const { build } = await import('esbuild')
    // a bundle in the project's folder finds what is external there
    const outfile = consumer.path(`esbuild.${format === 'esm' ? 'mjs' : 'cjs'}`)
    const entry = { entryPoints: [consumer.path('program.mjs')], absWorkingDir: consumer.folder }
    const options = { bundle: true, platform: 'node', minify: true, logLevel: 'silent', logOverride: {} }
    const { errors } = await build({ ...entry, ...options, format, external, outfile })
    if (errors.length > 0) return errors.map(({ text }) => text).join('\n')
    return compare(await consumer.run(outfile.slice(consumer.folder.length + 1), consumer.ruleFile), printed)
  }
}

function webpack({ module, extension }) {
  return async consumer => {
    const { default: compile } = await import('webpack')
    const name = `webpack.${extension}`
    const output = { path: consumer.folder, filename: name, ...(module ? { module, chunkFormat: 'module' } : {}) }
    const settings = { context: consumer.folder, entry: './program.mjs', target: 'node20', mode: 'production', output }
    const stats = await new Promise((resolve, reject) => {
      compile({ ...settings, experiments: { outputModule: module } }, (error, done) =>
        error ? reject(error) : resolve(done),
      )
    })
    if (stats.hasErrors()) return stats.toString({ all: false, errors: true })
    return compare(await consumer.run(name, consumer.ruleFile), printed)
  }
}

function jest(file, settings, nodeOption) {
  return async consumer => {
    cpSync(join(here, 'jest', file), consumer.path(file))
    writeFileSync(consumer.path('jest.config.json'), JSON.stringify(settings))
    const args = [...(nodeOption ? [nodeOption] : []), join(here, 'node_modules/jest/bin/jest.js')]
    const { code, output } = await consumer.node([...args, '--config', 'jest.config.json', file])
    return code === 0 ? '' : output
  }
}
