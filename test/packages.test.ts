import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { afterAll, describe, expect, it } from 'vitest'
import { withoutDefinitions } from '../scripts/build/definitions.mjs'
import { checkTarball } from '../scripts/release/check-tarball.mjs'
import { packPackages, published } from '../scripts/release/pack.mjs'
import { luaModules } from '../scripts/write-lua.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

interface Manifest {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly keywords: readonly string[]
  readonly license: string
  readonly engines: { readonly node: string }
  readonly files: readonly string[]
}

describe('the published packages', () => {
  it.each(published)('%s has a manifest, a README and a license that users can read', folder => {
    const manifest = JSON.parse(read(`${folder}/package.json`)) as Manifest
    expect(manifest).toMatchObject({ license: 'MIT', engines: { node: '>=20.19' } })
    expect(manifest.description.length).toBeGreaterThan(20)
    expect(manifest.keywords.length).toBeGreaterThan(2)
    expect(manifest.files.length).toBeGreaterThan(0)
    expect(read(`${folder}/LICENSE`)).toBe(read('LICENSE'))
    expect(read(`${folder}/README.md`)).toContain(`# ${manifest.name}\n`)
    expect(read(`${folder}/README.md`)).toMatch(/^npm install diana-/m)
  })

  it('no optional peer of the limiter can end an installation: each is optional, in any version', () => {
    const { peerDependencies, peerDependenciesMeta } = JSON.parse(read('packages/limiter/package.json')) as {
      readonly peerDependencies: Readonly<Record<string, string>>
      readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional: boolean }>>
    }
    expect(Object.keys(peerDependencies).length).toBeGreaterThan(0)
    // npm ends with ERESOLVE if the application has a version outside the range, also of a peer that it uses for something else
    expect(new Set(Object.values(peerDependencies))).toEqual(new Set(['*']))
    const all = Object.keys(peerDependencies).map(name => [name, { optional: true }])
    expect(peerDependenciesMeta).toEqual(Object.fromEntries(all))
  })

  it('all published packages have one version and depend on exactly that version of each other', () => {
    const manifests = published.map(folder => JSON.parse(read(`${folder}/package.json`)) as Manifest)
    const [{ version }] = manifests as [Manifest]
    expect(manifests.map(manifest => manifest.version)).toEqual(manifests.map(() => version))
    const { dependencies } = JSON.parse(read('packages/gateway/package.json')) as { dependencies: object }
    expect(dependencies).toMatchObject({ 'diana-limiter': version, 'diana-dashboard': version })
  })
})

describe('the packed packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'diana-packages-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  // the dashboard has no types, and `npm run long -- packages` builds it
  it.each(['packages/limiter', 'packages/gateway'])(
    'publint and attw find nothing wrong with the tarball of %s',
    async path => {
      const [packed] = await packPackages([path], folder)
      expect(await checkTarball(packed!.tarball)).toEqual([])
    },
    60_000,
  )

  it('the built gateway has the files that its programs start or read', () => {
    const programs = ['diana', 'worker-main', 'counting-main', 'gateway-settings', 'serve-settings']
    const files = [...programs.map(name => `dist/${name}.js`), 'demo/diana.yaml', 'THIRD-PARTY-LICENSES.txt']
    expect(files.filter(file => !existsSync(join(root, 'build/diana-gateway', file)))).toEqual([])
    const program = join(root, 'build/diana-gateway/dist/diana.js')
    const rules = join(root, 'build/diana-gateway/demo/diana.yaml')
    expect(execFileSync(process.execPath, [program, 'check', rules], { encoding: 'utf8' })).toMatch(
      /: ok, \d+ rules\n$/,
    )
  })

  it('the tarball of the limiter has the JSON Schema of the rule file and the Lua for Redis', async () => {
    const [packed] = await packPackages(['packages/limiter'], folder)
    const unpack = (path: string) =>
      execFileSync('tar', ['-xzOf', packed!.tarball, `package/${path}`], { encoding: 'utf8', maxBuffer: 1e7 })
    const schema = JSON.parse(unpack('diana.schema.json')) as object
    expect(withoutDefinitions(schema)).toEqual(JSON.parse(read('docs/diana.schema.json')))
    expect(new Ajv2020({ strict: false }).validateSchema(schema)).toBe(true)
    const code = ['lua', 'tables', 'shared-stores', 'shared-pace'].map(name => unpack(`dist/${name}.js`)).join('\n')
    // the longest piece of each module, as it is written into the sources
    for (const { text } of luaModules()) {
      const [longest] = [...text.matchAll(/^\s*local [\w, ]+ = .*$/gm)]
        .map(([line]) => line.trim())
        .sort((a, b) => b.length - a.length)
      expect(code).toContain(longest)
    }
  }, 60_000)
})
