import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packPackages } from '../scripts/release/pack.mjs'
import {
  Consumer,
  diskBytes,
  frameworkLinks,
  MOST_DISK_BYTES,
  resolutions,
  runtimeLinks,
  typeLinks,
} from './consumers/consumer.mjs'
import { environments, tryFirst } from './consumers/first-try.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'diana-consumer-'))
let tarball: string
let consumer: Consumer

async function createConsumer(name: string, links: readonly string[]): Promise<Consumer> {
  return await Consumer.create(join(folder, name), { tarball, modules: join(root, 'node_modules'), links })
}

/** Bundles one program with Vite, away from the library, so that nothing but the bundle is loaded; resolves to its folder. */
async function bundle(program: string, format: 'es' | 'cjs', outDir: string): Promise<string> {
  await build({
    root: consumer.folder,
    configFile: false,
    logLevel: 'silent',
    ssr: { noExternal: true },
    build: { ssr: program, outDir, emptyOutDir: true, minify: true, rolldownOptions: { output: { format } } },
  })
  return outDir
}

beforeAll(async () => {
  const [limiter] = await packPackages(['packages/limiter'], folder)
  tarball = limiter!.tarball
  consumer = await createConsumer('consumer', [...runtimeLinks, ...typeLinks])
}, 60_000)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the packed diana-limiter in an application', () => {
  it('an ES module imports the packed library', async () => {
    expect(await consumer.run('program.mjs', consumer.ruleFile)).toBe('200 200 503, 0 mistakes')
  })

  it('a CommonJS program requires all entries of the packed library', async () => {
    expect(await consumer.run('program.cjs', consumer.ruleFile)).toBe('true true false')
  })

  it.each(['es', 'cjs'] as const)(
    'a bundle by Vite in the format %s reads a long rule file',
    async format => {
      await bundle('program.mjs', format, join(folder, `bundle-${format}`))
      const extension = format === 'es' ? 'mjs' : 'js'
      expect(await consumer.run(`../bundle-${format}/program.${extension}`, consumer.ruleFile)).toBe(
        '200 200 503, 0 mistakes',
      )
    },
    60_000,
  )

  it('the extensions that the docs show compile against its types: algorithm, dimension, store, framework', async () => {
    const programs = ['own-algorithm.ts', 'own-dimension.ts', 'own-store.ts', 'filters/own-framework.ts']
    const paths = programs.map(name => join(root, 'test/docs', name))
    expect(await consumer.compilePrograms(join(root, 'node_modules/typescript/bin/tsc'), paths)).toBe('')
  })

  it('importing it, or a filter of it, loads none of its dependencies', async () => {
    expect(await (await createConsumer('bare', [])).run('light.mjs')).toBe('5')
  })

  it('a first call loads no module of Node that most limiters never use', async () => {
    expect(await consumer.run('first-call.mjs')).toBe('')
  })

  it('the installed library takes at most 2 MB, and installs no other package', () => {
    const library = join(folder, 'consumer/node_modules/diana-limiter')
    expect(diskBytes(library)).toBeLessThanOrEqual(MOST_DISK_BYTES)
    const { dependencies = {} } = JSON.parse(readFileSync(join(library, 'package.json'), 'utf8')) as {
      readonly dependencies?: object
    }
    expect(dependencies).toEqual({})
  })

  it.each(['express, import', 'express, require', 'fetch, import', 'node --test with mock.timers'])(
    'the first program of a new user works at the first try: %s',
    async name => {
      const newcomer = await createConsumer(`newcomer-${name}`, [...runtimeLinks, ...frameworkLinks])
      const environment = environments.find(one => one.name === name)!
      expect(await tryFirst(environment, newcomer, join(root, 'node_modules'))).toBe('')
    },
  )

  it('rules that are given in code need no YAML and no Redis', async () => {
    const withoutYaml = await createConsumer(
      'in-code',
      runtimeLinks.filter(name => name !== 'yaml'),
    )
    expect(await withoutYaml.run('in-code.mjs')).toBe('true true false, true')
  })

  it('a bundle that imports RateLimiter alone has at most 48 kB', async () => {
    const outDir = await bundle('pace.mjs', 'es', join(folder, 'bundle-pace'))
    expect(await consumer.run('../bundle-pace/pace.mjs')).toBe('5')
    const files = readdirSync(outDir, { recursive: true, encoding: 'utf8' }).filter(file => /js$/.test(file))
    const bytes = files.map(file => statSync(join(outDir, file)).size)
    // 6 kB are the queue of jobs, and 1 kB came with refills by the clock: jobs, events and limit of a RateLimiter are there at once, so that none of it is loaded later
    expect(bytes.reduce((sum, size) => sum + size, 0)).toBeLessThan(48_000)
  }, 60_000)

  it.each(resolutions)(
    'the types of the packed library are found from $title',
    async ({ extension, options }) => {
      expect(await consumer.compile(join(root, 'node_modules/typescript/bin/tsc'), extension, options)).toBe('')
    },
    60_000,
  )
})
