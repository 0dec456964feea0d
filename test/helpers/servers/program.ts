import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'

/** A real server that a test started. */
export interface Program {
  /** Ends it, gracefully by default. */
  stop(signal?: NodeJS.Signals): Promise<void>
}

/** Starts a program and waits until it answers. */
export async function startProgram(
  command: string,
  args: readonly string[],
  isReady: () => Promise<boolean>,
): Promise<Program> {
  // etcd 3.4 asks for this word on machines other than amd64
  const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch }
  const child = spawn(command, args, { stdio: 'ignore', env })
  const failed = once(child, 'error').then(([error]) => Promise.reject(error as Error))
  const exited = once(child, 'exit')
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  const untilReady = async () => {
    while (!(await isReady().catch(() => false))) {
      if (child.exitCode !== null) throw new Error(`${command} ended with code ${child.exitCode}`)
      await setTimeout(20)
    }
  }
  await Promise.race([failed, untilReady()])
  failed.catch(() => undefined)
  return {
    async stop(signal = 'SIGTERM') {
      process.removeListener('exit', kill)
      child.kill(signal)
      await exited
    },
  }
}

export { freePort } from '../free-port.mjs'

/** Starts a server on free ports, and again on others if it ends because another program has taken one of them by then. */
export async function onFreePorts<Server>(start: () => Promise<Server>): Promise<Server> {
  for (let triesLeft = 2; ; triesLeft--) {
    try {
      return await start()
    } catch (error) {
      if (triesLeft === 0) throw error
    }
  }
}
