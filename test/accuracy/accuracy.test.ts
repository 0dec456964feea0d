import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const program = fileURLToPath(new URL('./run.mjs', import.meta.url))

function measure(...args: string[]): Promise<{ code: number; out: string; rows: string[] }> {
  return new Promise(resolve => {
    execFile(process.execPath, [program, ...args], { cwd: root }, (error, stdout, stderr) => {
      const rows = stdout.split('\n').filter(line => /^ +\d+ {2}/.test(line))
      resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr, rows })
    })
  })
}

describe('a fleet on one Redis', { timeout: 180_000 }, () => {
  test('a fleet on one Redis never exceeds a limit, and uses it', async () => {
    const { out, rows } = await measure('--short')
    expect(rows).toHaveLength(5)
    const sound = rows.filter(row => !row.includes('MISSED'))
    // a machine too busy to make the calls in time says nothing about the limit
    const unfinished = rows.filter(row => /MISSED: load not reached: \d+ of \d+ calls came in time(?: {2}|$)/.test(row))
    expect([...sound, ...unfinished].sort(), out).toEqual(rows.toSorted())
    expect(sound.length, out).toBeGreaterThan(2)
  })

  // these find gross faults, or start and end at once: they may run side by side
  describe.concurrent('with a planted fault', () => {
    test.each([
      ['more', 'over the limit'],
      ['apart', 'over the limit'],
      ['less', 'used only'],
    ])('the accuracy suite detects the planted fault "%s"', async (fault, finding) => {
      const { code, out, rows } = await measure('--short', '--only', 'token-bucket', '--fault', fault)
      expect(rows).toHaveLength(1)
      expect(rows[0], out).toContain(finding)
      expect(code).toBe(1)
    })

    test.each([
      [['--shrot'], "Unknown option '--shrot'"],
      [['--fault', 'none'], 'there is no fault "none"'],
      [['--write', '--short'], '--write takes all cases'],
      [['--only', 'nothing'], 'there is no case of "nothing"'],
    ])('the accuracy command refuses the arguments %j', async (args, told) => {
      const { code, out } = await measure(...args)
      expect(code).toBe(2)
      expect(out).toContain(told)
    })
  })
})

test('docs/accuracy.md shows at least 40 cases', () => {
  const page = readFileSync(new URL('../../docs/accuracy.md', import.meta.url), 'utf8')
  expect(page.match(/^\| \d+ \|/gm)?.length).toBeGreaterThanOrEqual(40)
})
