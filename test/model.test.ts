import { execFile, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { mutants } from '../model/scenes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const isMissing = ['spin', 'gcc'].some(program => spawnSync(program, ['--version']).error)

function prove(...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [`${root}model/prove.mjs`, ...args], { cwd: root }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr })
    })
  })
}

describe.skipIf(isMissing)('the model of a fleet', { timeout: 120_000 }, () => {
  test('the model of two processes holds, and faults of before are found in it', async () => {
    const { code, out } = await prove('--short')
    expect([code, out]).toEqual([0, expect.stringMatching(/ 0 missed\n$/)])
  })
})

test('the command for the model refuses a scene that does not exist', async () => {
  const { code, out } = await prove('--only', 'nothing')
  expect(code).toBe(2)
  expect(out).toContain('there is no scene or fault of "nothing"')
})

test('the page of the model has each of its allowances and mutants', () => {
  const model = readFileSync(`${root}model/fleet.pml`, 'utf8')
  const page = readFileSync(`${root}model/README.md`, 'utf8')
  const allowances = [...model.matchAll(/^#define (\w+) (?:SHARE|LIMIT|1)$/gm)].map(([, name]) => name!)
  const constants = allowances.filter(
    name => !['ASKED', 'PASSED', 'UP'].includes(name) && !/^(?:PROCESSES|FAULTS|VERSIONS|MARGIN|LIMIT_B)$/.test(name),
  )
  expect(constants.length).toBeGreaterThan(8)
  expect(constants.filter(name => !page.includes(`\`${name}\``))).toEqual([])
  const known = mutants.map(({ name }) => name)
  expect(known.filter(name => !model.includes(name) || !page.includes(`\`${name}\``))).toEqual([])
})
