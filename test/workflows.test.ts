import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { published } from '../scripts/release/pack.mjs'
import { actionsOf, workflowFaults, writesOf } from './helpers/workflows.ts'

// The workflows cannot run here: these tests read them.

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const folder = '.github/workflows'
const files = readdirSync(join(root, folder))
const textOf = (name: string): string => read(join(folder, name))

describe('the check of workflows', () => {
  const good = textOf('release.yml')

  it.each([
    ['on:\n  push:', 'on:\n  pull_request_target:', 'trigger pull_request_target'],
    ['permissions: {}', 'permissions: write-all', 'no permissions at the top'],
    ['permissions: {}', 'permissions: { contents: write }', 'permissions to write at the top'],
    [' # v4.2.2', '', 'not pinned'],
    ['11bd71901bbe5b1630ceea73d27597364c9af683 # v4.2.2', 'v4', 'not pinned'],
    ['"$GITHUB_REF_NAME"', '${{ github.ref_name }}', 'braces in run'],
    ['path: dist/release', 'path: ${{ github.event.head_commit.message }}', 'text of others in with'],
    ['node-version: 24', 'token: ${{ secrets.TOKEN }}', 'names a secret'],
    ['persist-credentials: false', 'fetch-depth: 1', 'checkout keeps its credentials'],
    ['    timeout-minutes: 45\n', '', 'pack: no timeout-minutes'],
    ['needs: pack', 'needs: packs', 'needs packs, which is no job'],
    ['    environment: npm\n', '    enviroment: npm\n', 'unknown key enviroment'],
    ['npm publish "./', 'npm ci && npm publish "./', 'may write and runs'],
  ])('the check finds the fault of a workflow with %j as %j', (from, to, fault) => {
    expect(good).toContain(from)
    expect(workflowFaults(good.replace(from, to))).toContainEqual(expect.stringContaining(fault))
  })
})

it.each(files)('the workflow %s pins its actions, may only read by default, and runs no text of others', name => {
  expect(workflowFaults(textOf(name))).toEqual([])
})

it('only these jobs may write, and only this', () => {
  const writes = files.flatMap(name => writesOf(textOf(name)).map(write => `${name}, ${write}`))
  expect(writes).toEqual([
    'codeql.yml, analyze: security-events',
    'release.yml, publish: id-token',
    'release.yml, attach: contents',
    'scorecard.yml, analyze: security-events',
    'scorecard.yml, analyze: id-token',
  ])
})

it('an action has one version in all workflows', () => {
  const versions = new Map<string, Set<string>>()
  for (const { repository, commit, version } of files.flatMap(name => actionsOf(textOf(name)))) {
    versions.set(repository, (versions.get(repository) ?? new Set()).add(`${commit} ${version}`))
  }
  expect(versions.size).toBeGreaterThan(5)
  expect([...versions].filter(([, used]) => used.size > 1)).toEqual([])
})

it('the release publishes every package, one after those that it depends on', () => {
  const names = published.map(folder => (JSON.parse(read(`${folder}/package.json`)) as { name: string }).name)
  expect(/for name in (.*); do/.exec(textOf('release.yml'))![1]).toBe(names.join(' '))
})

it('the page about security names every workflow, and says that the tests only read them', () => {
  const [, section] = /^## The supply chain\n([\s\S]*?)^## /m.exec(read('SECURITY.md'))!
  expect(files.filter(name => !section!.includes(`\`${name}\``))).toEqual([])
  expect(section).toContain('test/workflows.test.ts')
})
