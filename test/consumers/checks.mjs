import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runNpm } from '../../scripts/run.mjs'
import { moreResolutions, resolutions } from './consumer.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const require = createRequire(import.meta.url)
const printed = '200 200 503, 0 mistakes'
const inCode = { program: 'in-code.mjs', expected: 'true true false, true' }

/** The compiler options with which ts-jest compiles the library, as docs/packages.md has them. */
const commonjs = { allowJs: true, module: 'commonjs', target: 'es2022', isolatedModules: true }

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
  {
    title: 'import of the entries that load no dependency',
    run: async consumer => compare(await consumer.run('light.mjs'), '5'),
  },
  { title: 'npm install beside older and newer majors of every optional peer', run: install },
  { title: 'pnpm install', run: installedBy('pnpm/bin/pnpm.cjs', ['install']) },
  { title: 'yarn install', run: installedBy('yarn/bin/yarn.js', ['install', '--no-lockfile']) },
  { title: 'rollup, ES module', run: rollup('es') },
  { title: 'rollup, CommonJS', run: rollup('cjs') },
  { title: 'esbuild, ES module', run: esbuild('esm') },
  { title: 'esbuild, CommonJS', run: esbuild('cjs') },
  { title: 'esbuild, ES module without a rule file', run: esbuild('esm', inCode) },
  { title: 'webpack, ES module', run: webpack({ module: true, extension: 'mjs' }) },
  { title: 'webpack, CommonJS', run: webpack({ module: false, extension: 'cjs' }) },
  { title: 'webpack, ES module without a rule file', run: webpack({ module: true, extension: 'mjs', ...inCode }) },
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
  {
    title: 'Jest, tests that are CommonJS, with ts-jest for the library',
    run: jest('require.test.js', {
      transform: { '\\.[jt]s$': [require.resolve('ts-jest'), { tsconfig: commonjs }] },
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

/** Versions of the optional peers that filters and stores do not support, or that came later than they did. */
const otherPeers = [
  { fastify: '4', express: '4', koa: '2', hono: '3', ioredis: '4', 'prom-client': '14', '@opentelemetry/api': '1.4' },
  { fastify: '3', '@nestjs/common': '9', '@nestjs/core': '9', 'reflect-metadata': '0.1', rxjs: '7' },
]

async function install(consumer) {
  const wrong = []
  for (const [index, dependencies] of otherPeers.entries()) {
    const folder = consumer.path(`peers-${index}`)
    mkdirSync(folder)
    const manifest = {
      name: 'peers',
      private: true,
      dependencies: { ...dependencies, 'diana-limiter': `file:${consumer.tarball}` },
    }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    const { code, output } = await runNpm([
      'install',
      '--package-lock-only',
      '--no-audit',
      '--no-fund',
      '--prefix',
      folder,
    ])
    if (code !== 0) wrong.push(output)
  }
  return wrong.join('\n')
}

/** A project of its own, whose packages another program than npm has installed. */
function installedBy(program, args) {
  return async consumer => {
    const name = `installed-by-${program.split('/')[0]}`
    const folder = consumer.path(name)
    mkdirSync(folder)
    const manifest = { name: 'installed', private: true, dependencies: { 'diana-limiter': `file:${consumer.tarball}` } }
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
    cpSync(consumer.path('program.mjs'), join(folder, 'program.mjs'))
    const { code, output } = await consumer.node([join(here, 'node_modules', program), ...args], folder)
    if (code !== 0 || /warn/i.test(output)) return output
    return compare(await consumer.run(`${name}/program.mjs`, consumer.ruleFile), printed)
  }
}

function rollup(format) {
  return async consumer => {
    const { rollup: bundle } = await import('rollup')
    const { nodeResolve } = await import('@rollup/plugin-node-resolve')
    const warnings = []
    const made = await bundle({
      input: consumer.path('program.mjs'),
      plugins: [nodeResolve({ preferBuiltins: true })],
      external: ['ioredis'],
      onwarn: ({ message }) => void warnings.push(message),
    })
    if (warnings.length > 0) return warnings.join('\n')
    const extension = format === 'es' ? 'mjs' : 'cjs'
    const names = `[name]-[hash].${extension}`
    const dir = consumer.path(`rollup-${format}`)
    await made.write({ dir, format, entryFileNames: `program.${extension}`, chunkFileNames: names })
    return compare(await consumer.run(`rollup-${format}/program.${extension}`, consumer.ruleFile), printed)
  }
}

function esbuild(format, { program = 'program.mjs', expected = printed } = {}) {
  return async consumer => {
    const { build } = await import('esbuild')
    // a bundle in the project's folder finds what is external there
    const outfile = consumer.path(`esbuild.${format === 'esm' ? 'mjs' : 'cjs'}`)
    const entry = { entryPoints: [consumer.path(program)], absWorkingDir: consumer.folder }
    const options = { bundle: true, platform: 'node', minify: true, logLevel: 'silent', logOverride: {} }
    const { errors, warnings } = await build({ ...entry, ...options, format, outfile })
    const faults = [...errors, ...warnings.filter(({ text }) => !text.includes('import.meta'))]
    if (faults.length > 0) return faults.map(({ text }) => text).join('\n')
    return compare(await consumer.run(outfile.slice(consumer.folder.length + 1), consumer.ruleFile), expected)
  }
}

function webpack({ module, extension, program = 'program.mjs', expected = printed }) {
  return async consumer => {
    const { default: compile } = await import('webpack')
    const name = `webpack.${extension}`
    const output = { path: consumer.folder, filename: name, ...(module ? { module, chunkFormat: 'module' } : {}) }
    const settings = { context: consumer.folder, entry: `./${program}`, target: 'node20', mode: 'production', output }
    const stats = await new Promise((resolve, reject) => {
      compile({ ...settings, experiments: { outputModule: module } }, (error, done) =>
        error ? reject(error) : resolve(done),
      )
    })
    // ioredis is not installed in the project, which must not be worth a warning either
    if (stats.hasErrors() || stats.hasWarnings()) return stats.toString({ all: false, errors: true, warnings: true })
    return compare(await consumer.run(name, consumer.ruleFile), expected)
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
