import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, vi } from 'vitest'
import { stringify } from 'yaml'
import type { GatewayRig } from '../helpers/gateway-rig.ts'
import { dianaProgram } from '../helpers/program-rig.ts'

export interface ServeProgram {
  readonly child: ChildProcess
  /** The address of the HTTP port. */
  readonly url: string
  readonly grpc: string
  readonly spoe: string | undefined
  readonly redis: string | undefined
  readonly config: string
  said(): string
  readonly ended: Promise<number | null>
}

/** Starts `diana serve` with a rule file of this document, and waits until it answers. The rig ends it. */
export async function startServe(
  rig: GatewayRig,
  document: object,
  args: readonly string[] = ['--admin-port', 'off'],
): Promise<ServeProgram> {
  const config = join(rig.folder(), 'diana.yaml')
  writeFileSync(config, stringify({ rules: [{ id: 'all', limit: '1000000/s' }], ...document }))
  const all = [dianaProgram, 'serve', '--config', config, '--port', '0', '--grpc-port', '0', ...args]
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', piece => {
      text += piece
    })
  }
  const ended = once(child, 'close').then(([code]) => code as number | null)
  rig.later(() => {
    child.kill('SIGKILL')
    return ended
  })
  const listens = vi.waitFor(() => expect(text).toContain('listens on'), { timeout: 60_000, interval: 10 })
  await Promise.race([listens, ended.then(code => Promise.reject(new Error(`ended with ${code}: ${text}`)))])
  return {
    ...{ child, config, ended, said: () => text },
    url: /listens on ([^\s,]+)/.exec(text)![1]!,
    grpc: /grpc on ([\d.:]+)/.exec(text)![1]!,
    spoe: /spoe on ([\d.:]+)/.exec(text)?.[1],
    redis: /redis on ([\d.:]+)/.exec(text)?.[1],
  }
}
