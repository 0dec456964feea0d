import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

function run(program: string, ...args: string[]): Promise<{ code: number; out: string }> {
  return new Promise(resolve => {
    execFile(process.execPath, [`${root}test/chaos/${program}`, ...args], { cwd: root }, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, out: stdout + stderr })
    })
  })
}

describe('a fleet whose Redis fails', { timeout: 180_000 }, () => {
  test('fails no call, is never over its limits, and comes back', async () => {
    const { out } = await run('run.mjs', '--short')
    const rows = out.trim().split('\n').slice(1)
    expect(rows, out).toHaveLength(5)
    // how long calls take is the machine's affair as well; and where it let the processes wait, so is what that costs
    for (const row of rows) expect(row).not.toMatch(row.includes('lag') ? /calls failed/ : /calls failed|over|not back/)
  })

  test.each([
    [['--shrot'], "Unknown option '--shrot'"],
    [['--only', 'nothing'], 'there is no fault of "nothing"'],
    [['--write', '--short'], '--write takes all faults'],
  ])('%j is a mistake', async (args, told) => {
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
