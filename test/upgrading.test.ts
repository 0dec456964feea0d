import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { parse } from 'yaml'
import { FORMAT } from '../packages/limiter/src/stores/redis/counter.ts'
import { causes } from '../packages/limiter/src/stores/store-error-causes.ts'
import { published } from '../scripts/release/pack.mjs'

// docs/upgrading.md names the versions and the storage format that code, manifests and workflows name.

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const page = read('docs/upgrading.md')

/** Rows of the table whose first column has this heading. */
function table(heading: string): string[][] {
  const [, rows] = new RegExp(`^\\| ${heading} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n)+)`, 'm').exec(page)!
  return rows!
    .trimEnd()
    .split('\n')
    .map(row => row.slice(1, -1).split('|'))
    .map(cells => cells.map(cell => cell.trim()))
}

it('the page names the oldest Node that every package accepts, and the versions that the tests run on', () => {
  const rows = table('Node')
  const oldest = /from (\d+\.\d+) on/.exec(rows[0]![0]!)![1]
  for (const folder of ['.', ...published]) {
    const { engines } = JSON.parse(read(join(folder, 'package.json'))) as { engines: { node: string } }
    expect(engines.node).toBe(`>=${oldest}`)
  }
  const { jobs } = parse(read('.github/workflows/test.yml')) as {
    jobs: { all: { strategy: { matrix: { node: number[] } } } }
  }
  const tested = rows.filter(([, , isTested]) => isTested === 'yes').map(([name]) => Number.parseInt(name!, 10))
  expect(tested).toEqual(jobs.all.strategy.matrix.node)
})

it('the page names the tested Redis of docs/distributed.md, and the oldest that the error of an old Redis names', () => {
  const rows = table('Redis')
  const [, tested] = /^Tested against Redis ([\d.]+)/m.exec(read('docs/distributed.md'))!
  expect(rows.filter(([, , isTested]) => isTested!.startsWith('yes')).map(([version]) => version)).toEqual([tested])
  expect(causes.find(({ code }) => code === 'STORE_TOO_OLD')!.remedy).toContain(`Redis ${rows[0]![0]} or later`)
  expect(page).toContain(`Redis before ${rows[0]![0]} is not supported`)
})

it('the page names the storage format of the code', () => {
  expect(/^The storage format of this release is `([^`]+)`/m.exec(page)![1]).toBe(FORMAT)
})
