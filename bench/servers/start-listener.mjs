import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import { cpuMicrosecondsOf } from './process-cpu.mjs'

const PAUSE_MS = 20

/**
 * Starts a program and waits until it answers on `port`; `complaint` returns what it has said if it does not. `folder` is removed when
 * the program is stopped.
 */
export async function startListener({ command, port, folder, startMs, complaint, ...options }) {
  const [program, ...args] = command
  const child = spawn(program, args, { stdio: 'ignore', ...options })
  const failed = once(child, 'error').then(([error]) => error)
  const kill = () => child.kill('SIGTERM')
  process.once('exit', kill)
  for (let waitedMs = 0; !(await answers(port)); waitedMs += PAUSE_MS) {
    if (waitedMs > startMs || child.exitCode !== null)
      throw new Error(`${program} does not start: ${await complaint()}`)
    const error = await Promise.race([failed, setTimeout(PAUSE_MS)])
    if (error) throw error
  }
  return {
    port,
    cpuMicroseconds: () => cpuMicrosecondsOf(child.pid),
    async stop() {
      process.removeListener('exit', kill)
      child.kill('SIGTERM')
      if (child.exitCode === null) await once(child, 'exit')
      await rm(folder, { recursive: true })
    },
  }
}

async function answers(port) {
  const response = await fetch(`http://127.0.0.1:${port}/orders`).catch(() => undefined)
  return response?.ok === true
}
