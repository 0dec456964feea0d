import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, type Limiter, type Section } from 'diana-limiter'
import type { SectionFollower } from 'diana-limiter/gateway'
import type { FastifyServerOptions } from 'fastify'
import { type ListeningSocket, socketOf } from '../http/listening-socket.ts'
import type { AdminSettings } from '../settings/admin-settings.ts'
import { followFixedSettings } from '../settings/fixed-settings.ts'
import { type GatewaySettings, gatewaySection } from '../settings/gateway-settings.ts'
import { settingsOf } from '../settings/settings-of.ts'
import type { HttpStats } from '../telemetry/http-stats.ts'

/** A program that takes calls: it forwards them, or it answers proxies. Supervision, admin API and ending are the same. */
export interface ServerProgram {
  readonly name: 'gateway' | 'serve'
  /** Its part of the rule file. */
  readonly section: Section
  /** Starts it in this process; `onLimiter` gets its limiter before calls come. */
  start(options: ServerProcessOptions, onLimiter?: (limiter: Limiter) => void): Promise<ServerProcess>
  /** Holds the rule file to what workers can change, for a process that takes no calls itself, but reads and writes that file. */
  followFixedSettings(): SectionFollower
  /** Returns what the rule file says of the program at this moment, as far as every program has it. */
  settingsOf(limiter: Limiter): ServerSettings
}

export interface ServerSettings {
  readonly shutdown: GatewaySettings['shutdown']
  readonly admin?: AdminSettings | undefined
}

export interface ServerProcessOptions {
  /** The rule file, which may hold the gateway's own section. */
  readonly config: string
  /** The service of calls that no route takes. */
  readonly upstream?: string | undefined
  /** The address to listen on; the section says it unless it is given. */
  readonly host?: string | undefined
  readonly port?: number | undefined
  /** The port for gRPC, of a program that has one. */
  readonly grpcPort?: number | undefined
  /** A socket that listens already, in place of host and port; of the supervisor, in a worker. */
  readonly fd?: number | undefined
  /** The socket of a counting process, and how many processes count there. */
  readonly counting?: { readonly socket: string; readonly processes: number } | undefined
  readonly logger?: FastifyServerOptions['logger']
  /** Called at the start with problems of certificates that are used nevertheless. */
  readonly onWarning?: ((warning: string) => void) | undefined
}

/** A started program that takes calls: in this process, or in the workers of a supervisor. */
export interface ServerProcess {
  readonly address: string
  /** The other addresses that it listens on, by what is spoken there. */
  readonly also?: Readonly<Record<string, string>> | undefined
  readonly limiter: Limiter
  /** True if more calls should be sent here. */
  isReady(): boolean
  /** Returns the socket on which calls come in, for another process. */
  socket(): Promise<ListeningSocket | undefined>
  /** Returns the outcomes of calls as HTTP sees them. */
  httpStats(): HttpStats | Promise<HttpStats>
  /** Goes on with new log files where the present ones were renamed. */
  reopenLogs(): void
  /** Turns unready, lets calls come for as long as the settings say, finishes those under way, and ends. */
  close(): Promise<void>
}

/** `diana start`. */
export const gatewayProgram: ServerProgram = {
  name: 'gateway',
  section: gatewaySection,
  start: startGatewayProcess,
  followFixedSettings,
  settingsOf,
}

const usualHost = '127.0.0.1'
const usualPort = 8080

/** Starts a gateway in this process; `onLimiter` is given its limiter before calls come. */
async function startGatewayProcess(
  options: ServerProcessOptions,
  onLimiter: (limiter: Limiter) => void = () => {},
): Promise<ServerProcess> {
  const { config, upstream, counting, logger = false } = options
  // a supervisor of workers forwards no calls itself, so it does not load the modules that do
  const [{ openGateway }, { logRefusals }, { pino }] = await Promise.all([
    import('../gateway.ts'),
    import('../telemetry/refusal-log.ts'),
    import('pino'),
  ])
  const limiter = await createLimiter({ config, counting, sections: [gatewaySection] })
  let ready = true
  try {
    onLimiter(limiter)
    if (logger !== false) logRefusals(limiter, pino({ name: 'diana', level: process.env.DIANA_LOG_LEVEL ?? 'info' }))
    const { app: gateway, ...rest } = await openGateway({
      ...{ limiter, upstream, logger, folder: dirname(config), onWarning: options.onWarning },
      isReady: () => ready,
    })
    const { listen } = settingsOf(limiter)
    // empty is not set, as in a shell
    const host = options.host ?? listen.host ?? (process.env.DIANA_HOST || usualHost)
    const port = options.port ?? listen.port ?? usualPort
    const listening = await gateway
      .listen({ host, port, ...(options.fd !== undefined && { fd: options.fd }) })
      .catch(async error => {
        await gateway.close()
        throw Object.assign(error, { host, port })
      })
    // Fastify does not know that the server it was given speaks TLS
    const address = settingsOf(limiter).tls ? listening.replace(/^http:/, 'https:') : listening
    const close = async (): Promise<void> => {
      ready = false
      await pause(settingsOf(limiter).shutdown.delayMs)
      await gateway.close()
      await limiter.close()
    }
    const reopenLogs = (): void => void rest.reopenLogs()
    const socket = async (): Promise<ListeningSocket | undefined> => socketOf(gateway.server)
    return { address, limiter, isReady: () => ready, socket, httpStats: rest.httpStats, reopenLogs, close }
  } catch (error) {
    await limiter.close()
    throw error
  }
}
