import { dirname } from 'node:path'
import type { Limiter } from 'diana-limiter'
import type { Processes } from '../admin/processes.ts'
import type { RunningAdmin } from '../admin/server/start-admin.ts'
import { AdminState } from '../admin/state/admin-state.ts'
import { shareStickySecret } from '../services/balancing/sticky-cookie.ts'
import { takeInheritedSockets } from './inherited-sockets.ts'
import { logChanges } from './log-changes.ts'
import type { ServerProcess, ServerProcessOptions, ServerProgram } from './server-program.ts'
import { ServiceManager } from './service-manager.ts'
import { Signals } from './signals.ts'
import { reportReady } from './successor.ts'
import { surviveErrors } from './survive.ts'
import { CliError, type Terminal } from './terminal.ts'
import { untilReplaced } from './until-replaced.ts'
import type { Supervisor } from './workers/supervisor.ts'

/** The program that a command runs until a signal ends it. */
export interface ServerRun {
  readonly program: ServerProgram
  readonly options: Omit<ServerProcessOptions, 'fd'>
  readonly workers: number
  /** Undefined for the one that the file says, or the usual one. */
  readonly adminPort: number | 'off' | undefined
  readonly isDemo: boolean
  /** The level of the log; undefined for none. */
  readonly logLevel: string | undefined
  /** Is called with the limiter before calls come; may throw. */
  onLimiter(limiter: Limiter): void
  /** Is called when calls are taken; the function that it returns is called before the end. */
  onStarted(process: ServerProcess, admin: RunningAdmin | undefined): (() => Promise<void>) | undefined
}

const mostWorkers = 64

/** Starts the processes and the admin API, and resolves when they have ended, by a signal or replaced by a new process. */
export async function runServer(run: ServerRun, terminal: Terminal): Promise<void> {
  const signals = new Signals({ isTerminal: process.stdin.isTTY, print: terminal.print })
  const { stopped } = signals
  // a process that takes over must know the cookies of this one
  shareStickySecret()
  const endSurviving = surviveErrors({ report: terminal.printError })
  try {
    const sockets = takeInheritedSockets(process.env, process.pid)
    const manager = new ServiceManager({ ...{ env: process.env, pid: process.pid }, printError: terminal.printError })
    const warn = (warning: string): void => terminal.printError(`warning: ${warning}`)
    let state: AdminState | undefined
    const onLimiter = (limiter: Limiter): void => {
      run.onLimiter(limiter)
      state = stateOf(limiter, run, warn)
      // before calls come
      state.restore(limiter)
    }
    const server = await startProcesses({ ...run, onLimiter }, sockets.traffic, terminal)
    const admin = await startAdminOf(server, run, { state, fd: sockets.admin, onWarning: warn }).catch(async error => {
      await server.close()
      throw error
    })
    signals.onReopen = () => {
      server.reopenLogs()
      admin?.reopenLogs()
    }
    const beforeEnd = run.onStarted(server, admin)
    // the channel of any other parent, such as a process manager, is not ours to close
    if (sockets.fromPredecessor) reportReady()
    void manager.ready()
    const replaced = untilReplaced({ gateway: server, admin, manager, isDemo: run.isDemo, stopped, ...terminal })
    const isReplaced = await Promise.race([stopped.then(() => false), replaced.then(() => true)])
    await beforeEnd?.()
    // operators and systemd speak to the new process from now on
    if (isReplaced) await admin?.close()
    else await manager.stopping()
    // first, so that calls under way still find their service
    await server.close()
    await admin?.close()
  } finally {
    signals.close()
    endSurviving()
  }
}

async function startProcesses(run: ServerRun, fd: number | undefined, terminal: Terminal): Promise<ServerProcess> {
  const { program, workers, logLevel, onLimiter } = run
  const options: ServerProcessOptions = { ...run.options, fd }
  const warn = (warning: string): void => terminal.printError(`warning: ${warning}`)
  try {
    if (workers > 1) {
      const { Supervisor } = await import('./workers/supervisor.ts')
      return await Supervisor.start({ ...options, program, workers, logLevel, onLimiter, ...terminal })
    }
    const logger = logLevel === undefined ? false : { level: logLevel }
    return await program.start({ ...options, logger, onWarning: warn }, limiter => {
      onLimiter(limiter)
      logChanges(limiter, terminal)
    })
  } catch (error) {
    throw toListenError(error as ListenError)
  }
}

/** Opens what operators have done before, if the rule file says where it is kept. */
function stateOf(limiter: Limiter, { program, options }: ServerRun, onWarning: (warning: string) => void): AdminState {
  const { state, audit } = program.settingsOf(limiter).admin ?? {}
  return new AdminState({ state, audit, folder: dirname(options.config), onWarning })
}

interface AdminParts {
  readonly state: AdminState | undefined
  readonly fd: number | undefined
  readonly onWarning: (warning: string) => void
}

/** Operators come in through a port of their own, which stays open while the calls under way end, and says so. */
async function startAdminOf(
  server: ServerProcess,
  { program, options, adminPort, isDemo: demo }: ServerRun,
  { state, fd, onWarning }: AdminParts,
): Promise<RunningAdmin | undefined> {
  if (adminPort === 'off') return undefined
  const { startAdmin } = await import('../admin/server/start-admin.ts')
  const { limiter } = server
  const { host, port, token, viewToken, hosts, identity } = program.settingsOf(limiter).admin ?? {}
  const processes = await processesOf(server)
  const isReady = () => server.isReady()
  const httpStats = () => server.httpStats()
  await state?.openAudit()
  try {
    return await startAdmin({
      limiter,
      processes,
      host,
      port: adminPort ?? port,
      fd,
      token,
      viewToken,
      hosts,
      identity,
      state,
      folder: dirname(options.config),
      onWarning,
      demo,
      isReady,
      httpStats,
    })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    throw new CliError(
      1,
      `port ${adminPort ?? port} is in use: choose another one with --admin-port N, or --admin-port off`,
    )
  }
}

/** Returns the workers of a supervisor, for the admin API; undefined if this process takes the calls. */
async function processesOf(server: ServerProcess | Supervisor): Promise<Processes | undefined> {
  if (!('workers' in server)) return undefined
  const { watchWorkers } = await import('../admin/watch-workers.ts')
  return watchWorkers(server)
}

export function readAdminPort(text: unknown): ServerRun['adminPort'] {
  if (text === undefined || text === 'off') return text
  return readPort(String(text), '--admin-port')
}

export function readWorkers(text: string): number {
  const workers = Number(text)
  if (/^\d{1,3}$/.test(text) && workers >= 1 && workers <= mostWorkers) return workers
  throw new CliError(2, `--workers must be a number from 1 to ${mostWorkers}, not "${text}"`)
}

export function readPort(text: string, option = '--port'): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new CliError(2, `${option} must be a number from 0 to 65535, not "${text}"`)
}

interface ListenError extends NodeJS.ErrnoException {
  readonly host?: string
  readonly port?: number
}

/** Says why it cannot listen, and what to do; returns any other error as it is. */
function toListenError(error: ListenError): Error {
  const { code, message, host, port } = error
  if (port === undefined) return error
  if (code === 'EADDRINUSE')
    return new CliError(1, `port ${port} of ${host} is in use: choose another one with --port N`)
  if (code === 'EACCES')
    return new CliError(1, `no permission to listen on port ${port}: choose one above 1023 with --port N`)
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new CliError(1, `this machine has no address ${host}: choose another one with --host ADDRESS`)
  }
  return new CliError(
    1,
    `cannot listen on port ${port} of ${host} (${code ?? message}): choose another one with --port N`,
  )
}
