import type { RunningAdmin } from '../admin/server/start-admin.ts'
import { readAdminPort, readPort, readWorkers, runServer } from '../process/run-server.ts'
import { gatewayProgram } from '../process/server-program.ts'
import { CliError, type Terminal } from '../process/terminal.ts'
import { settingsOf } from '../settings/settings-of.ts'
import { upstreamFault } from '../settings/upstreams/address-settings.ts'
import type { Arguments, Command } from './command.ts'
import { startDemoTraffic } from './demo/demo-traffic.ts'

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

/** `diana start`: the gateway. */
export const start: Command = {
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
    const demo = isDemo ? await import('./demo/demo.ts') : undefined
    const service = demo?.createDemoService()
    const rules = await demo?.copyDemoRules()
    try {
      const upstream = settings.guarded?.upstream ?? (await service?.listen({ port: 0, host: '127.0.0.1' }))
      const config = settings.guarded?.config ?? rules!.path
      const { host, port, workers, adminPort } = settings
      await runServer(
        {
          ...{ program: gatewayProgram, options: { config, upstream, host, port }, workers, adminPort, isDemo },
          logLevel: isDemo ? undefined : 'warn',
          onLimiter: limiter => assertRoutes(settingsOf(limiter).routes, upstream),
          onStarted: ({ address }, admin) => {
            introduce(address, { ...settings, config, upstream }, terminal)
            const endTraffic = service && admin && startDemoTraffic(address)
            if (admin) showDashboard(admin, settings, terminal)
            return endTraffic
          },
        },
        terminal,
      )
      return 0
    } finally {
      await service?.close()
      await rules?.remove()
    }
  },
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

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:' && url?.protocol !== 'unix:') {
    throw new CliError(1, `--upstream must be a URL such as http://127.0.0.1:3000, not "${text}"`)
  }
  const fault = upstreamFault(text)
  if (fault !== undefined) throw new CliError(1, `the upstream "${text}" ${fault}`)
  return text
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
