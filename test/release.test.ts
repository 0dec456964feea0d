import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { nextVersion } from '../scripts/release/next-version.mjs'
import { packTagged, release } from '../scripts/release/release.mjs'
import { releaseChangelog } from '../scripts/release/release-changelog.mjs'
import { sbomOf } from '../scripts/release/sbom.mjs'
import { setAddress } from '../scripts/release/set-repository.mjs'

describe('the next version', () => {
  it.each([
    ['0.1.0', 'patch', '0.1.1'],
    ['0.1.9', 'minor', '0.2.0'],
    ['1.9.9', 'major', '2.0.0'],
    ['0.1.0', '0.1.10', '0.1.10'],
    ['0.9.0', '0.10.0', '0.10.0'],
  ])('the next version after %s, %s is %s', (current, step, next) => {
    expect(nextVersion(current, step)).toBe(next)
  })

  it.each([
    ['0.10.0', '0.9.9', 'not later'],
    ['1.0.0', '1.0.0', 'not later'],
    ['1.0.0', 'mayor', 'is no version'],
    ['1.0.0', '1.1', 'is no version'],
  ])('the next version after %s, %s is refused', (current, step, message) => {
    expect(() => nextVersion(current, step)).toThrow(message)
  })
})

describe('the changelog of a release', () => {
  it('the changelog of a release has the changes under the version and its date, below an empty "Unreleased"', () => {
    const text = '# Changelog\n\n## Unreleased\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n'
    expect(releaseChangelog(text, '0.2.0', '2026-02-03')).toBe(
      '# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-02-03)\n\n- new\n\n## 0.1.0 (2026-01-01)\n\n- old\n',
    )
  })

  it.each([
    ['# Changelog\n', 'no heading'],
    ['## Unreleased\n\n## 0.1.0 (2026-01-01)\n\n- old\n', 'nothing under "Unreleased"'],
    ['## Unreleased\n- new\n\n## 0.2.0 (2026-01-01)\n', 'already has version 0.2.0'],
  ])('the changelog of a release is refused if there is nothing to release: %j', (text, message) => {
    expect(() => releaseChangelog(text, '0.2.0', '2026-02-03')).toThrow(message)
  })
})

describe('npm run release', () => {
  let root: string
  const printed: string[] = []
  const folders = ['packages/one', 'packages/two']
  const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }).trim()
  const write = (path: string, value: unknown) => {
    const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`
    writeFileSync(join(root, path), text)
  }
  const readJson = (path: string): unknown => JSON.parse(readFileSync(join(root, path), 'utf8'))
  const run = (change: { isDryRun?: boolean; problems?: string[]; repository?: string } = {}) =>
    release({
      ...{ root, folders, step: 'minor', date: '2026-02-03', isDryRun: change.isDryRun ?? false },
      repository: change.repository,
      print: (line: string) => printed.push(line),
      parts: {
        build: async () => {},
        pack: async () => folders.map(folder => ({ name: folder, tarball: join(root, `${folder}.tgz`) })),
        check: async () => change.problems ?? [],
      },
    })

  beforeEach(() => {
    printed.length = 0
    root = mkdtempSync(join(tmpdir(), 'diana-release-'))
    git('init', '--quiet')
    git('config', 'user.name', 'Test')
    git('config', 'user.email', 'test@example.com')
    for (const folder of folders) mkdirSync(join(root, folder), { recursive: true })
    const one = { name: 'one', version: '0.1.0' }
    const two = { name: 'two', version: '0.1.0', dependencies: { one: '0.1.0', zod: '^4.0.0' } }
    write('packages/one/package.json', one)
    write('packages/two/package.json', two)
    write('package-lock.json', { packages: { '': {}, 'packages/one': one, 'packages/two': two } })
    write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n- new\n')
    git('add', '.')
    git('commit', '--quiet', '--message', 'start')
  })

  afterEach(() => rmSync(root, { recursive: true, force: true }))

  it('npm run release sets one version everywhere, commits, tags, and prints the commands that publish', async () => {
    await run()
    const two = { name: 'two', version: '0.2.0', dependencies: { one: '0.2.0', zod: '^4.0.0' } }
    expect(readJson('packages/one/package.json')).toEqual({ name: 'one', version: '0.2.0' })
    expect(readJson('packages/two/package.json')).toEqual(two)
    expect(readJson('package-lock.json')).toMatchObject({ packages: { 'packages/two': two } })
    expect(readFileSync(join(root, 'CHANGELOG.md'), 'utf8')).toContain('## 0.2.0 (2026-02-03)\n\n- new')
    expect(git('status', '--porcelain')).toBe('')
    expect(git('describe')).toBe('v0.2.0')
    expect(printed.slice(-3)).toEqual([
      `  npm publish ${join('packages', 'one.tgz')}`,
      `  npm publish ${join('packages', 'two.tgz')}`,
      '  git push --follow-tags',
    ])
  })

  it('with --repository, the manifests and the READMEs of the packages name it, once', async () => {
    for (const folder of folders) write(`${folder}/README.md`, '# it\n\nMIT licensed.\n')
    git('add', '.')
    git('commit', '--quiet', '--message', 'readmes')
    await run({ repository: 'https://git.example/diana.git' })
    const url = 'https://git.example/diana'
    expect(readJson('packages/two/package.json')).toMatchObject({
      homepage: `${url}#readme`,
      bugs: `${url}/issues`,
      repository: { type: 'git', url: `git+${url}.git`, directory: 'packages/two' },
    })
    const readme = `# it\n\nDocumentation, examples and source: ${url}\n\nMIT licensed.\n`
    expect(readFileSync(join(root, 'packages/one/README.md'), 'utf8')).toBe(readme)
    expect(setAddress(readme, url)).toBe(readme)
    expect(git('status', '--porcelain')).toBe('')
    await expect(run({ repository: 'diana' })).rejects.toThrow('--repository is diana')
  })

  it('a dry run packs and checks, and writes neither a file nor a tag', async () => {
    await run({ isDryRun: true })
    expect(git('status', '--porcelain')).toBe('')
    expect(git('tag')).toBe('')
    expect(git('rev-list', '--count', 'HEAD')).toBe('1')
    expect(printed.join('\n')).toContain('0.1.0 → 0.2.0')
  })

  it('a tagged release is packed only if the tag has its version and the manifests name the repository', async () => {
    const parts = {
      build: async () => void printed.push('built'),
      pack: async () => [{ name: 'one', tarball: 'one.tgz' }],
      check: async () => ['a fault'],
    }
    const pack = (tag: string) => packTagged({ root, folders, tag, parts, print: line => printed.push(line) })
    await expect(pack('v0.2.0')).rejects.toThrow('one has version 0.1.0, which is not that of the tag v0.2.0')
    await expect(pack('v0.1.0')).rejects.toThrow('one names no repository')
    expect(printed).toEqual([])
    for (const name of ['one', 'two'])
      write(`packages/${name}/package.json`, { name, version: '0.1.0', repository: {} })
    await expect(pack('v0.1.0')).rejects.toThrow('one cannot be published:\n- a fault')
    parts.check = async () => []
    await pack('v0.1.0')
    expect(printed.slice(-2)).toEqual(['built', expect.stringContaining('one: packed')])
  })

  it('a tree with changes is refused', async () => {
    write('new.txt', 'new')
    await expect(run()).rejects.toThrow('the tree has changes')
  })

  it('a tag that exists is refused before anything is written', async () => {
    git('tag', 'v0.2.0')
    await expect(run()).rejects.toThrow('the tag v0.2.0 exists already')
    expect(git('status', '--porcelain')).toBe('')
  })

  it('a package that cannot be published leaves every file as it was', async () => {
    await expect(run({ problems: ['README.md is missing'] })).rejects.toThrow('README.md is missing')
    expect(git('status', '--porcelain')).toBe('')
    expect(git('tag')).toBe('')
  })
})

describe('the bill of materials of a package', () => {
  const integrity = `sha512-${Buffer.from('digest').toString('base64')}`
  const at = (version: string, dependencies = {}) => ({ version, license: 'MIT', integrity, dependencies })
  const lock = {
    packages: {
      'node_modules/a': at('1.0.0', { b: '^2.0.0' }),
      'node_modules/a/node_modules/b': at('2.0.0', { a: '^1.0.0', '@s/c': '*' }),
      'node_modules/b': at('1.0.0'),
      'node_modules/@s/c': at('3.0.0', { b: '^1.0.0' }),
      'node_modules/own': { link: true, resolved: 'packages/own' },
      'packages/own': { version: '0.1.0', license: 'MIT' },
      'node_modules/yaml': at('2.9.1'),
    },
  }
  const manifest = { name: 'it', version: '0.1.0', license: 'MIT', dependencies: { a: '^1.0.0', own: '0.1.0' } }
  const licenses = 'Code of these packages is inside.\n\nyaml 2.9.1\nLicense: ISC\n\nCopyright someone\n'
  const sbom = sbomOf(manifest, lock, licenses)

  it('the bill lists what npm installs, each in the version that its user gets, and what is inside the files', () => {
    const refs = sbom.components.map(component => component['bom-ref'])
    expect(refs).toEqual(['@s/c@3.0.0', 'a@1.0.0', 'b@1.0.0', 'b@2.0.0', 'own@0.1.0', 'yaml@2.9.1'])
    const inside = sbom.components.filter(({ properties }) => properties?.[0]?.name === 'cdx:npm:package:bundled')
    expect(inside.map(component => component['bom-ref'])).toEqual(['yaml@2.9.1'])
    expect(sbom.components[0]).toMatchObject({
      purl: 'pkg:npm/%40s/c@3.0.0',
      hashes: [{ alg: 'SHA-512', content: Buffer.from('digest').toString('hex') }],
    })
    expect(new Map(sbom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))).toEqual(
      new Map([
        ['it@0.1.0', ['a@1.0.0', 'own@0.1.0', 'yaml@2.9.1']],
        ['a@1.0.0', ['b@2.0.0']],
        ['b@2.0.0', ['@s/c@3.0.0', 'a@1.0.0']],
        ['@s/c@3.0.0', ['b@1.0.0']],
        ['b@1.0.0', []],
        ['own@0.1.0', []],
      ]),
    )
  })

  it('a dependency that the lock file lacks is refused', () => {
    expect(() => sbomOf({ ...manifest, dependencies: { lost: '1.0.0' } }, lock, '')).toThrow('no lost: run npm install')
  })
})
