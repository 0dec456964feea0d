import type { Limiter } from 'diana-limiter'
import { type RunningAdmin, startAdmin } from '../admin/server/start-admin.ts'
import { watchWorkers } from '../admin/watch-workers.ts'
import { copyDemoRules, createDemoService } from '../demo/demo.ts'
import { startDemoTraffic } from '../demo/demo-traffic.ts'
import {
  type GatewayProcess,
  type GatewayProcessOptions,
  settingsOf,
  startGatewayProcess,
} from '../lifecycle/gateway-process.ts'
import { takeInheritedSockets } from '../lifecycle/inherited-sockets.ts'
import { logChanges } from '../lifecycle/log-changes.ts'
import { ServiceManager } from '../lifecycle/service-manager.ts'
import { Signals } from '../lifecycle/signals.ts'
import { reportReady } from '../lifecycle/successor.ts'
import { surviveErrors } from '../lifecycle/survive.ts'
import { untilReplaced } from '../lifecycle/until-replaced.ts'
import { upstreamFault } from '../settings/upstreams/address-settings.ts'
import { shareStickySecret } from '../upstreams/balancing/sticky-cookie.ts'
import { Supervisor } from '../workers/supervisor.ts'
import { type Arguments, CliError, type Command, type Terminal } from './command.ts'

interface Settings {
  /** A rule file, and the service for calls that no route in it takes; the demo's where there is no file. */
  readonly guarded: Guarded | undefined
  readonly port: number | undefined
  readonly host: string | undefined
  readonly workers: number
  /** Undefined for the one that the file says, or the usual one. */
  readonly adminPort: number | 'off' | undefined
}

/** The rule file and the service that are used in the end. */
interface Guarded {
  readonly config: string
  readonly upstream: string | undefined
}

const mostWorkers = 64

/** `diana start`: the gateway. */
export const start: Command = {
  name: 'start',
  summary: 'Starts the gateway in front of a service; with no rule file, in front of a demo.',
  usage: '[--config FILE] [--upstream URL] [--port N] [--host ADDRESS] [--workers N] [--admin-port N|off]',
  details: [
    '  --config FILE     the rules, and under gateway: the routes',
    '  --upstream URL    the service for calls that no route takes, such as http://127.0.0.1:3000',
    '  --port N          the port to listen on, 0 for any free port; default: the one in the file, or 8080',
    '  --host ADDRESS    the address to listen on, 0.0.0.0 for all; default: the one in the file or in DIANA_HOST, or 127.0.0.1',
    '  --workers N       how many processes take calls (one more counts for them); default 1',
    '  --admin-port N    the port of dashboard and admin API, or off; default: the one in the file, or 8081',
  ],
  options: {
    config: { type: 'string' },
    upstream: { type: 'string' },
    port: { type: 'string' },
    host: { type: 'string' },
    workers: { type: 'string' },
    'admin-port': { type: 'string' },
  },
  async run(args, terminal) {
    const settings = readSettings(args)
    const isDemo = settings.guarded === undefined
    const signals = new Signals({ isTerminal: process.stdin.isTTY, print: terminal.print })
    const { stopped } = signals
    // a process that takes over must know the cookies of this one
    shareStickySecret()
    const endSurviving = surviveErrors({ report: terminal.printError, giveUp: () => process.exit(1) })
    const service = isDemo ? createDemoService() : undefined
    const rules = isDemo ? await copyDemoRules() : undefined
    try {
      const upstream = settings.guarded?.upstream ?? (await service?.listen({ port: 0, host: '127.0.0.1' }))
      const config = settings.guarded?.config ?? rules!.path
      const sockets = takeInheritedSockets(process.env, process.pid)
      const manager = new ServiceManager({ ...{ env: process.env, pid: process.pid }, printError: terminal.printError })
      const gateway = await startGateway({ ...settings, config, upstream, fd: sockets.traffic }, terminal)
      signals.onReopen = () => gateway.reopenLogs()
      const admin = await startAdminOf(gateway, settings, sockets.admin).catch(async error => {
        await gateway.close()
        throw error
      })
      introduce(gateway.address, { ...settings, config, upstream }, terminal)
      const endTraffic = service && admin && startDemoTraffic(gateway.address)
      if (admin) showDashboard(admin, settings, terminal)
      // the channel of any other parent, such as a process manager, is not ours to close
      if (sockets.fromPredecessor) reportReady()
      void manager.ready()
      const replaced = untilReplaced({ gateway, admin, manager, isDemo, stopped, ...terminal })
      const isReplaced = await Promise.race([stopped.then(() => false), replaced.then(() => true)])
      await endTraffic?.()
      // operators and systemd speak to the new process from now on
      if (isReplaced) await admin?.close()
      else await manager.stopping()
      // the gateway first, so that calls under way still find their service
      await gateway.close()
      await admin?.close()
      return 0
    } finally {
      signals.close()
      endSurviving()
      await service?.close()
      await rules?.remove()
    }
  },
}

async function startGateway(
  { guarded, config, upstream, host, port, fd, workers }: Settings & Guarded & Pick<GatewayProcessOptions, 'fd'>,
  terminal: Terminal,
): Promise<GatewayProcess> {
  const options: GatewayProcessOptions = { config, upstream, host, port, fd }
  const logLevel = guarded && 'warn'
  const warn = (warning: string): void => terminal.printError(`warning: ${warning}`)
  try {
    const onLimiter = (limiter: Limiter): void => assertRoutes(settingsOf(limiter).routes, upstream)
    if (workers > 1) return await Supervisor.start({ ...options, workers, logLevel, onLimiter, ...terminal })
    const logger = logLevel === undefined ? false : { level: logLevel }
    return await startGatewayProcess({ ...options, logger, onWarning: warn }, limiter => {
      onLimiter(limiter)
      logChanges(limiter, terminal)
    })
  } catch (error) {
    throw toListenError(error as ListenError)
  }
}

function assertRoutes(routes: readonly unknown[], upstream: string | undefined): void {
  if (routes.length > 0 || upstream !== undefined) return
  const remedy = 'add gateway: { routes: [{ to: http://127.0.0.1:3000 }] } to the file, or --upstream URL'
  throw new CliError(1, `no service to protect: ${remedy}`)
}

function readSettings({ words, options }: Arguments): Settings {
  if (words.length > 0) throw new CliError(2, `unexpected argument "${words[0]}"`)
  const { config, upstream } = options as Record<string, string | undefined>
  if (config === undefined && upstream !== undefined) {
    throw new CliError(2, '--upstream needs rules: add --config FILE')
  }
  return {
    guarded: config === undefined ? undefined : { config, upstream: upstream && readUrl(upstream) },
    port: options.port === undefined ? undefined : readPort(String(options.port)),
    host: options.host === undefined ? undefined : String(options.host),
    workers: readWorkers(String(options.workers ?? 1)),
    adminPort: readAdminPort(options['admin-port']),
  }
}

function readAdminPort(text: unknown): Settings['adminPort'] {
  if (text === undefined || text === 'off') return text
  return readPort(String(text), '--admin-port')
}

/** Operators come in through a port of their own, which stays open while the gateway shuts down, and says so. */
async function startAdminOf(
  gateway: GatewayProcess,
  { guarded, adminPort }: Settings,
  fd: number | undefined,
): Promise<RunningAdmin | undefined> {
  if (adminPort === 'off') return undefined
  const { limiter } = gateway
  const { host, port, token, viewToken, hosts } = settingsOf(limiter).admin ?? {}
  const processes = gateway instanceof Supervisor ? watchWorkers(gateway) : undefined
  const demo = guarded === undefined
  const isReady = () => gateway.isReady()
  const httpStats = () => gateway.httpStats()
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

function readWorkers(text: string): number {
  const workers = Number(text)
  if (/^\d{1,3}$/.test(text) && workers >= 1 && workers <= mostWorkers) return workers
  throw new CliError(2, `--workers must be a number from 1 to ${mostWorkers}, not "${text}"`)
}

function readPort(text: string, option = '--port'): number {
  const port = Number(text)
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port
  throw new CliError(2, `${option} must be a number from 0 to 65535, not "${text}"`)
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:' && url?.protocol !== 'unix:') {
    throw new CliError(1, `--upstream must be a URL such as http://127.0.0.1:3000, not "${text}"`)
  }
  const fault = upstreamFault(text)
  if (fault !== undefined) throw new CliError(1, `the upstream "${text}" ${fault}`)
  return text
}

interface ListenError extends NodeJS.ErrnoException {
  readonly host?: string
  readonly port?: number
}

/** Why it cannot listen, and what to do; any other error as it is. */
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

function introduce(
  address: string,
  { guarded, config, upstream, workers }: Settings & Guarded,
  terminal: Terminal,
): void {
  const where = `${address}${workers > 1 ? ` with ${workers} workers` : ''}`
  if (guarded !== undefined) {
    const services = upstream ?? 'the services of its routes'
    terminal.print(`Diana listens on ${where} in front of ${services}, with the rules of ${config}`)
    return
  }
  terminal.print(`Diana listens on ${where} in front of a demo service (${upstream}).`)
  terminal.print('')
  terminal.print(`The rules are in ${config}, a copy that is deleted at the end:`)
  terminal.print('/hello allows 5 calls per account in 10 seconds; other paths allow more.')
  terminal.print('')
  terminal.print('Call it seven times as ann: the sixth call gets 503. Then call it as bob, who still gets 200:')
  terminal.print(`  curl -s -o /dev/null -w '%{http_code}\\n' -H 'x-account-id: ann' '${address}/hello?[1-7]'`)
  terminal.print(`  curl -i -H 'x-account-id: bob' ${address}/hello`)
}

/** Prints the address of the dashboard; the demo has traffic to show from the start. */
function showDashboard({ address }: RunningAdmin, { guarded }: Settings, terminal: Terminal): void {
  if (guarded === undefined) {
    terminal.print('')
    terminal.print('The demo sends itself about ten calls a second, as iris, juno and others. See them here:')
  }
  terminal.print(`Dashboard: ${address}`)
}
