import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { atTheStart as ofServe } from '../serve/decision-server.ts'
import { atTheStart as ofGateway } from '../settings/fixed-settings.ts'
import { operations } from './operations/index.ts'
import { roleOf } from './operations/operation.ts'

const page = readFileSync(new URL('../../../../docs/admin.md', import.meta.url), 'utf8')

test.each([
  ['gateway', Object.keys(ofGateway)],
  ['serve', ofServe.map(([, word]) => word)],
])('docs/admin.md lists the settings of `%s` that the API cannot change, and no others', (section, names) => {
  const row = page.split('\n').find(line => line.startsWith(`| \`${section}\` |`)) ?? ''
  const listed = [...row.matchAll(/`([^`]+)`/g)].map(([, name]) => name).slice(1)
  expect(listed.toSorted()).toEqual(names.toSorted())
})

test('docs/admin.md says what a viewer may do besides GET, and which GET they may not', () => {
  const named = (list: typeof operations): string[] => list.map(({ path }) => path).toSorted()
  const others = operations.filter(one => one.method !== 'GET' && roleOf(one) === 'viewer')
  const kept = operations.filter(one => one.method === 'GET' && roleOf(one) !== 'viewer')
  expect([named(others), named(kept)]).toEqual([['/explain'], ['/document', '/versions', '/versions/{id}']])
  expect(page).toContain('every `GET` except `/document` and `/versions`')
  expect(page).toContain('`POST /explain`, which counts nothing')
})
