import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Result {
  readonly failures: readonly string[]
  readonly calls: Readonly<Record<string, number>>
  /** How long the old processes took to end, and how long their streams went on. */
  readonly endedAfterMs: readonly number[]
  readonly cutAfterMs: readonly number[]
  readonly timeoutMs: number
}

function run(...args: readonly string[]): Promise<string> {
  return new Promise(resolve => {
    execFile(process.execPath, [`${root}test/restarts/run.mjs`, ...args], { cwd: root }, (_error, out) => resolve(out))
  })
}

// `npm run long -- restarts` does this with one process, too
test.each(['2'])(
  'a gateway with %s workers is reloaded, replaced by a new process and ended under load without a failed call',
  { timeout: 120_000 },
  async workers => {
    const { failures, calls, endedAfterMs, cutAfterMs, timeoutMs } = JSON.parse(
      await run('--json', '--rounds', '1', '--timeout', '1', '--workers', workers),
    ) as Result
    expect(failures).toEqual([])
    // calls of every kind were made all the while
    for (const [kind, count] of Object.entries(calls)) expect([kind, count > 1]).toEqual([kind, true])
    // once by the restart and once by the end; streams go on until then
    expect(endedAfterMs).toHaveLength(2)
    for (const ms of endedAfterMs) expect(ms).toBeLessThan(timeoutMs + 2000)
    for (const ms of cutAfterMs) expect(ms).toBeGreaterThan(timeoutMs * 0.8)
  },
)
