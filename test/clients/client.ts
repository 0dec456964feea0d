import { execFile, spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { findProgram } from '../../scripts/programs.mjs'
import type { GatewayRig } from '../helpers/gateway-rig.ts'

const execute = promisify(execFile)

/** A program that people call services with, or a server that stands before or behind the gateway. */
export interface Client {
  readonly name: string
  /** Whether the set-up of the tests installs it, so that `npm test` tries it. */
  readonly isInstalledBySetUp: boolean
  /** Its version as it says it; undefined if it is not installed. */
  version(): string | undefined
  /** Uses it through a gateway; throws if anything is not as without one. */
  use(rig: GatewayRig): Promise<void>
}

const searchPath = `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`

/** The line in which a program says its version; undefined if there is no such program. */
export function versionOf(program: string, args: readonly string[] = ['--version']): string | undefined {
  const path = findProgram(program, searchPath)
  if (path === undefined) return undefined
  const { stdout, stderr } = spawnSync(path, args, { encoding: 'utf8' })
  const lines = `${stdout}\n${stderr}`.split('\n')
  return lines.find(line => /\d+\.\d+/.test(line) && !line.includes('Error'))?.trim()
}

interface RunOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Runs a program to its end; gives what it printed. */
export async function runProgram(program: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const env = { ...process.env, PATH: searchPath, ...options.env }
  const { stdout } = await execute(program, [...args], { ...options, env, timeout: 120_000, maxBuffer: 1e8 })
  return stdout
}

/** Starts a server that runs until the rig closes. */
export function startProgram(rig: GatewayRig, program: string, args: readonly string[]): void {
  const child = spawn(findProgram(program, searchPath) ?? program, args, { stdio: 'ignore' })
  const ended = new Promise(resolve => child.once('close', resolve))
  rig.later(async () => {
    child.kill('SIGTERM')
    await ended
  })
}

/** Random bytes that are the same each time. */
export function someBytes(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0, state = 1; at < length; at++) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    bytes[at] = state >> 16
  }
  return bytes
}

/** A folder of npm packages that the set-up does not install, if there is one. */
export function packageFolder(): string | undefined {
  return process.env.DIANA_CLIENT_PACKAGES === undefined
    ? undefined
    : join(process.env.DIANA_CLIENT_PACKAGES, 'node_modules')
}
