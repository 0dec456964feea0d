import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { planRound } from './plan/plan.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))

function run(program: string, ...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [`${root}test/fuzz/${program}`, ...args], { cwd: root }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr })
    })
  })
}

describe('the fuzzer', { timeout: 180_000 }, () => {
  test('the fuzzer finds no fault in short rounds of hostile callers and services', async () => {
    const { code, out } = await run('run.mjs', '--short')
    expect(out).toContain('nothing was found')
    expect(code).toBe(0)
  })

  test('the fuzzer finds a planted fault, writes it to a file, and finds it again by that file', async () => {
    const { code, out } = await run(
      'run.mjs',
      '--filter',
      'faulty',
      '--theme',
      'orderly',
      '--seed',
      '1',
      '--rounds',
      '1',
    )
    expect(out).toContain('a planted fault')
    expect(out).toContain('FOUND in round 0 (orderly) of seed 1, with 1 worker, filters: faulty')
    const [, file] = /--replay (\S+)/.exec(out) ?? []
    const again = await run('run.mjs', '--replay', file!)
    rmSync(file!)
    expect(again.out).toContain('a planted fault')
    expect([code, again.code]).toEqual([1, 1])
  })

  test('the fuzzer plans the same round for the same seed, and another one for another seed', () => {
    for (let round = 0; round < 50; round++) expect(planRound(7, round)).toEqual(planRound(7, round))
    expect(planRound(7, 0)).not.toEqual(planRound(8, 0))
  })

  test('a fuzzer plan survives being written to a replay file', () => {
    for (let round = 0; round < 50; round++) {
      const plan = planRound(9, round)
      expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
    }
  })

  test.each([
    ['run.mjs', ['--theme', 'nothing'], 'there is no theme "nothing"'],
    ['run.mjs', ['--rounds', 'many'], '--rounds must be a number, not "many"'],
    ['run.mjs', ['--workers', '7'], 'no configuration has these workers and filters'],
    ['run.mjs', ['--replay', 'nowhere.json'], 'nowhere.json cannot be replayed'],
    ['attack.mjs', ['--only', 'nothing'], 'there is no attack "nothing"'],
    ['attack.mjs', ['--seconds', '0'], '--seconds and --workers must be 1 or more'],
  ])('npm run %s refuses the arguments %j with a reason', async (program, args, message) => {
    const { code, out } = await run(program, ...args)
    expect(out).toContain(message)
    expect(code).toBe(2)
  })
})
