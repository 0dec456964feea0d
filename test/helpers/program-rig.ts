import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, vi } from 'vitest'
import { stringify } from 'yaml'
import type { GatewayRig } from './gateway-rig.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The program that users call `diana`. */
export const dianaProgram: string = join(root, 'packages/gateway/bin/diana.mjs')

/** Compiles the sources, of which workers import single modules; costs a tenth of a second if that is done already. */
export function build(): void {
  execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'], { cwd: root, stdio: 'pipe' })
}

export interface Program {
  readonly child: ChildProcess
  readonly url: string
  /** All that it printed so far. */
  said(): string
  /** How it ended. */
  readonly ended: Promise<number | null>
}

/** Starts `diana` with a rule file of this document, and waits until it takes calls. The rig ends it. */
export async function startProgram(
  rig: GatewayRig,
  document: object,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<Program & { readonly folder: string; readonly config: string }> {
  const folder = rig.folder()
  const config = join(folder, 'diana.yaml')
  writeFileSync(config, stringify({ rules: [{ id: 'all', limit: '1000000/s' }], ...document }))
  const program = await startDiana(['--config', config, ...args], env)
  rig.later(() => {
    program.child.kill('SIGKILL')
    return program.ended
  })
  return { ...program, folder, config }
}

/** Has the rig kill a process that is not a child of the test, unless it has ended by then. */
export function killLater(rig: GatewayRig, pid: number): void {
  const startedAt = startTimeOf(pid)
  rig.later(() => {
    // the system gives the number of a process that has ended to another one
    if (startedAt !== undefined && startTimeOf(pid) === startedAt) process.kill(pid, 'SIGKILL')
  })
}

export async function startDiana(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Program> {
  const child = spawn(process.execPath, [dianaProgram, 'start', '--port', '0', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', piece => {
      text += piece
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  // hooks start programs too, and expect.poll is for tests only
  const listens = vi.waitFor(() => expect(text).toContain('listens on'), { timeout: 60_000, interval: 10 })
  const failed = ended.then(code => Promise.reject(new Error(`ended with ${code}: ${text}`)))
  await Promise.race([listens, failed]).catch(error => {
    child.kill('SIGKILL')
    throw error
  })
  return { child, url: /listens on (\S+)/.exec(text)![1]!, said: () => text, ended }
}

/** The processes that a program has started, by what they run. */
export function childrenOf(pid: number): { readonly workers: number[]; readonly counting: number[] } {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/).filter(Boolean)
  const runs = (child: string, program: string): boolean => {
    try {
      return readFileSync(`/proc/${child}/cmdline`, 'utf8').includes(program)
    } catch {
      return false
    }
  }
  return {
    workers: children.filter(child => runs(child, 'worker-main')).map(Number),
    counting: children.filter(child => runs(child, 'counting-main')).map(Number),
  }
}

/** Whether a process runs; one that has ended and was not waited for does not. */
export function isRunning(pid: number): boolean {
  return startTimeOf(pid) !== undefined
}

/** When a process started, in ticks since the system did; undefined if it has ended. */
function startTimeOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
