import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

function run(program: string, ...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [`${root}test/chaos/${program}`, ...args], { cwd: root }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr })
    })
  })
}

interface Result {
  readonly name: string
  readonly failed: number
  readonly isBack: boolean
  /** By how many calls a rule was over, beyond what the docs allow. */
  readonly beyondBy: number
  /** The events that were checked against the model, and those that it does not allow. */
  readonly traced: number
  readonly rejected: readonly string[]
  /** How late the processes themselves were. */
  readonly lagMs: number
}

describe('a fleet whose Redis fails', { timeout: 180_000 }, () => {
  test('a fleet whose Redis fails loses no call, exceeds limits by at most the calls under way, and recovers', async () => {
    const { out } = await run('run.mjs', '--short', '--json', '--tries', '2')
    const results = out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Result)
    expect(results, out).toHaveLength(2)
    for (const { name, failed, isBack, beyondBy, traced, rejected, lagMs } of results) {
      expect([name, failed, traced > 1000, rejected]).toEqual([name, 0, true, []])
      // where the machine let the processes wait, what that costs is its affair as well
      if (lagMs > 10) continue
      // calls under way when an outage begins may be over, as docs/reliability.md says
      expect([name, isBack, beyondBy <= 2]).toEqual([name, true, true])
    }
  })

  test.concurrent.each([
    [['--shrot'], "Unknown option '--shrot'"],
    [['--only', 'nothing'], 'there is no fault of "nothing"'],
    [['--only', 'nothing', '--only', 'late'], 'there is no fault of "nothing"'],
    [['--only', 'late', '--runs', '1.5'], '--runs must be a whole number'],
    [['--write', '--short'], '--write takes all faults'],
  ])('the chaos command refuses the arguments %j', async (args, told) => {
    const { code, out } = await run('run.mjs', ...args)
    expect(code).toBe(2)
    expect(out).toContain(told)
  })
})

test('docs/reliability.md shows every fault', async () => {
  const page = readFileSync(`${root}docs/reliability.md`, 'utf8')
  const source = readFileSync(`${root}test/chaos/faults.mjs`, 'utf8')
  const names = [...source.matchAll(/^ {4}name: '(.*)',$/gm)].map(match => match[1]!)
  expect(names.length).toBeGreaterThan(15)
  expect(names.filter(name => !page.includes(`| ${name} |`))).toEqual([])
})
