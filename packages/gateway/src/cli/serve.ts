import { readAdminPort, readPort, readWorkers, runServer, type ServerRun } from '../process/run-server.ts'
import { serveProgram } from '../process/serve-program.ts'
import { CliError } from '../process/terminal.ts'
import type { Arguments, Command } from './command.ts'

/** `diana serve`: the decision server. */
export const serve: Command = {
  usage: '--config FILE [--port N] [--grpc-port N] [--host ADDRESS] [--workers N] [--admin-port N|off]',
  details: [
    '  --config FILE     the rules, and under serve: the ports',
    '  --port N          the HTTP port, 0 for any free port; default: the one in the file, or 8082',
    '  --grpc-port N     the gRPC port; default: the one in the file, or 8083',
    '  --host ADDRESS    the address to listen on, 0.0.0.0 for all; default: the one in the file or in DIANA_HOST, or 127.0.0.1',
    '  --workers N       how many processes answer (one more counts for them); default 1',
    '  --admin-port N    the port of dashboard and admin API, or off; default: the one in the file, or 8081',
    '',
    'Only proxies of trustProxy in the rule file may ask; without it, only those of this machine.',
  ],
  options: {
    config: { type: 'string' },
    port: { type: 'string' },
    'grpc-port': { type: 'string' },
    host: { type: 'string' },
    workers: { type: 'string' },
    'admin-port': { type: 'string' },
  },
  async run(args, terminal) {
    const { config, workers, ...settings } = readSettings(args)
    await runServer(
      {
        ...settings,
        ...{ program: serveProgram, workers, isDemo: false, logLevel: 'warn' },
        onLimiter: () => {},
        onStarted: ({ address, also = {} }, admin) => {
          const others = Object.entries(also).map(([what, where]) => `${what} on ${where}`)
          const where = [address, ...others].join(', ')
          const many = workers > 1 ? ` with ${workers} workers` : ''
          terminal.print(`Diana listens on ${where}${many} and answers proxies by the rules of ${config}`)
          if (admin) terminal.print(`Dashboard: ${admin.address}`)
          return undefined
        },
      },
      terminal,
    )
    return 0
  },
}

function readSettings({
  words,
  options,
}: Arguments): Pick<ServerRun, 'options' | 'workers' | 'adminPort'> & { readonly config: string } {
  if (words.length > 0) throw new CliError(2, `unexpected argument "${words[0]}"`)
  const { config, host, port, workers = '1' } = options as Record<string, string | undefined>
  if (config === undefined) throw new CliError(2, 'no rules: add --config FILE')
  const grpcPort = options['grpc-port']
  return {
    config,
    options: {
      config,
      host,
      port: port === undefined ? undefined : readPort(port),
      grpcPort: grpcPort === undefined ? undefined : readPort(String(grpcPort), '--grpc-port'),
    },
    workers: readWorkers(workers),
    adminPort: readAdminPort(options['admin-port']),
  }
}
