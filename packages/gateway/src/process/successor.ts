import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import type { ListeningSocket } from '../http/listening-socket.ts'
import { socketsVariable } from './inherited-sockets.ts'

/** The sockets that a successor takes over, by their names. */
export type HandedSockets = Readonly<Partial<Record<'traffic' | 'admin', ListeningSocket>>>

const startMs = 60_000

/**
 * Starts this program again, from the files that are on the disk now, on the sockets of this process. Resolves with its
 * process id when it takes calls; rejects if it ends before, takes too long, or `signal` says that nothing is to start.
 */
export async function startSuccessor(sockets: HandedSockets, signal: AbortSignal): Promise<number> {
  const handed = Object.entries(sockets)
  const env: NodeJS.ProcessEnv = { ...process.env, [socketsVariable]: handed.map(([name]) => name).join(':') }
  // the variable of systemd's watchdog names this process, not the successor
  delete env.WATCHDOG_PID
  const stdio = ['inherit', 'inherit', 'inherit', ...handed.map(([, { handle }]) => handle.fd), 'ipc']
  const options = { env, stdio } as SpawnOptions
  const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], options)
  for (const [, socket] of handed) socket.release()
  try {
    await isReady(child, signal)
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  child.disconnect()
  child.unref()
  return child.pid!
}

/** Reports to the gateway that started this process to take its place that this one takes calls. */
export function reportReady(): void {
  process.send?.('ready', undefined, undefined, () => {
    if (process.connected) process.disconnect()
  })
}

function isReady(child: ChildProcess, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('this one was told to end')))
    const late = setTimeout(() => reject(new Error(`it took no calls within ${startMs / 1000} s`)), startMs)
    child.once('message', () => {
      clearTimeout(late)
      resolve()
    })
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      clearTimeout(late)
      reject(new Error(`it ended before it took calls (${signal ?? `exit code ${code}`})`))
    })
  })
}
