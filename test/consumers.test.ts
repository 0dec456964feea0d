import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packPackages } from '../scripts/release/pack.mjs'
import { Consumer, resolutions, runtimeLinks, typeLinks } from './consumers/consumer.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'diana-consumer-'))
let consumer: Consumer

beforeAll(async () => {
  const [limiter] = await packPackages(['packages/limiter'], folder)
  const links = [...runtimeLinks, ...typeLinks]
  const settings = { tarball: limiter!.tarball, modules: join(root, 'node_modules'), links }
  consumer = await Consumer.create(join(folder, 'consumer'), settings)
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
      // away from the library, so that nothing but the bundle is loaded
      const outDir = join(folder, `bundle-${format}`)
      await build({
        root: consumer.folder,
        configFile: false,
        logLevel: 'silent',
        ssr: { noExternal: true },
        build: { ssr: 'program.mjs', outDir, emptyOutDir: true, minify: true, rolldownOptions: { output: { format } } },
      })
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
  }, 60_000)

  it.each(resolutions)(
    'the types of the packed library are found from $title',
    async ({ extension, options }) => {
      expect(await consumer.compile(join(root, 'node_modules/typescript/bin/tsc'), extension, options)).toBe('')
    },
    60_000,
  )
})
