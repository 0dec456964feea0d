import type { Server } from 'node:net'
import type { ListeningSocket } from '../../http/listening-socket.ts'
import type { ServerProcessOptions, ServerProgram } from '../server-program.ts'

/** The settings that a worker is started with, in its environment. */
export interface WorkerSettings extends Omit<ServerProcessOptions, 'logger'> {
  readonly program: ServerProgram['name']
  readonly logLevel: string | undefined
}

/** The settings that the counting process is started with. */
export interface CountingSettings {
  readonly config: string
  readonly socket: string
}

/** A message of a worker or the counting process to its supervisor. */
export type Told =
  | {
      readonly what: 'ready'
      readonly address?: string | undefined
      readonly also?: Readonly<Record<string, string>> | undefined
    }
  | { readonly what: 'failed'; readonly message: string; readonly details: object }
  | { readonly what: 'print' | 'printError'; readonly line: string }
  | { readonly what: 'answer'; readonly question: number; readonly answer: unknown }
  /** Comes with the handle. */
  | { readonly what: 'socket' }

/** A message of a supervisor: to end, to reopen log files, to take the socket on which calls come in, or to answer a question. */
export type Order =
  | { readonly what: 'end' }
  | { readonly what: 'socket' }
  | { readonly what: 'reopen' }
  | { readonly what: 'ask'; readonly question: number; readonly about: string; readonly details: unknown }

export const settingsVariable = 'DIANA_PROCESS'

/** Returns what this process was started with. */
export function readProcessSettings<Settings>(): Settings {
  return JSON.parse(process.env[settingsVariable] ?? '{}') as Settings
}

/** Reports to the supervisor; no process listens if it is gone. */
export function tell(told: Told): void {
  if (process.connected) process.send?.(told, undefined, undefined, () => {})
}

/** Sends a copy of the socket on which calls come in. */
export function tellSocket(socket: ListeningSocket | undefined): void {
  const told: Told = { what: 'socket' }
  // as a server, it would take calls in the supervisor; Node sends handles as well, though its types do not say so
  if (process.connected && socket) process.send?.(told, socket.handle as unknown as Server, undefined, () => {})
}

/** Calls `end` once the supervisor is gone, also if it went while this program was being loaded. */
export function onceSupervisorIsGone(end: () => void): void {
  process.on('disconnect', end)
  if (!process.connected) end()
}

/** Says why this process cannot do its work, and ends it. */
export function fail(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  // the code, and what else is needed to say what to do
  const told: Told = { what: 'failed', message, details: { ...(error as object) } }
  if (process.send) process.send(told, undefined, undefined, () => process.exit(1))
  else process.exit(1)
}
