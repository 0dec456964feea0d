import type { RequestListener } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { DianaError, type Limiter } from 'diana-limiter'
import { documentOf, type SectionFollower } from 'diana-limiter/gateway'
import fastify, { type FastifyInstance, type FastifyServerOptions } from 'fastify'
import { askForBody } from '../http/message-headers.ts'
import { ServerTls } from '../http/tls/server-tls.ts'
import { Closing, GatewayServer } from '../inbound/server.ts'
import { readSecret } from '../settings/secret.ts'
import type { HttpStats } from '../telemetry/http-stats.ts'
import { boundedReports } from '../telemetry/logging/bounded-reports.ts'
import { reportServer } from '../telemetry/server-reports.ts'
import { Telemetry } from '../telemetry/telemetry.ts'
import { version } from '../version.ts'
import { Peers } from './calls/peers.ts'
import type { GrpcServer } from './grpc/grpc-server.ts'
import { createGrpcServer } from './grpc-services.ts'
import { checkListener } from './http/check-listener.ts'
import { dialectOf } from './http/dialects.ts'
import { addJsonApi } from './http/json-api.ts'
import { unreadableQuestion } from './http/unreadable-question.ts'
import { RespServer } from './resp/resp-server.ts'
import { RespUsers } from './resp/resp-users.ts'
import { httpSettingsOf, parseServeSettings, type RespSettings, type ServeSettings } from './serve-settings.ts'
import { SpoeServer } from './spoe/spoe-server.ts'

export interface DecisionServerOptions {
  /** Made with `sections: [serveSection]`. */
  readonly limiter: Limiter
  /** The folder that paths in the rule file are seen from. */
  readonly folder: string
  readonly logger?: FastifyServerOptions['logger']
  readonly onWarning?: ((warning: string) => void) | undefined
  readonly isReady: () => boolean
}

/** The servers of a process that answers proxies; none of them listens yet. */
export interface DecisionServer {
  readonly settings: ServeSettings
  /** The HTTP port. */
  readonly app: FastifyInstance
  readonly grpc: GrpcServer | undefined
  readonly spoe: SpoeServer | undefined
  readonly redis: RespServer | undefined
  httpStats(): HttpStats
  reopenLogs(): Promise<void>
  close(): Promise<void>
}

/** Builds the servers that answer proxies by the rules of a limiter. */
export async function openDecisionServer(options: DecisionServerOptions): Promise<DecisionServer> {
  const { limiter, folder, logger = false, isReady } = options
  const document = documentOf(limiter)
  const live = new LiveServeSettings()
  document.followSection('serve', live.follow)
  const { settings } = live
  const peers = new Peers(document)
  let app: FastifyInstance | undefined
  const files = {
    folder,
    onTrouble: (trouble: string) => app?.log.error(`the certificate stays as it was: ${trouble}`),
    onWarning: (warning: string) => (app ? app.log.warn(warning) : options.onWarning?.(warning)),
  }
  const [httpTls, grpcTls, respTls] = [true, true, settings.redis?.tls === true].map(
    isUsed => (isUsed && settings.tls && new ServerTls(settings.tls, files)) || undefined,
  )
  const httpSettings = httpSettingsOf(settings)
  const isProxy = (address: string): boolean => peers.isTrusted(address)
  const telemetry = await Telemetry.open({
    ...{ settings: httpSettings, folder, isProxy },
    addressOf: ({ peer, request }) => peers.addressOf(peer, request.headers[document.forwardedBy]),
    onTrouble: trouble => app?.log.warn(trouble),
  })
  let gatewayServer: GatewayServer | undefined
  app = fastify({
    logger,
    bodyLimit: 1024 * 1024,
    return503OnClosing: false,
    pluginTimeout: 0,
    serverFactory: listener => {
      const onRequest: RequestListener = (request, response) => {
        const dialect = dialectOf(request.url ?? '/')
        if (dialect !== undefined) check(dialect, request, response)
        else {
          askForBody(request, response)
          listener(request, response)
        }
      }
      gatewayServer = new GatewayServer(onRequest, {
        ...{ settings: () => httpSettings, tls: httpTls, isProxy, telemetry },
        onError: error => app?.log.error({ err: error }, 'a connection could not be accepted'),
        isProxyByAddress: isProxy,
        // proxies ask about calls of HTTP/1.0 as well
        mayLackHost: true,
        isReady: () => !closing.hasBegun && isReady(),
      })
      return gatewayServer.server
    },
    clientErrorHandler: (error, socket) =>
      gatewayServer?.takeUnreadable(error, socket, unreadableQuestion(error, socket)),
  })
  const closing: Closing = new Closing({
    app,
    shutdown: () => live.settings.shutdown,
    announceClosing: () => gatewayServer?.announceClosing(),
    closeIdleConnections: () => gatewayServer?.closeIdleConnections(),
    closeTunnels: () => {},
    tunnels: () => 0,
    destroyConnections: () => gatewayServer?.destroyConnections(),
  })
  const isReadyNow = (): boolean => !closing.hasBegun && isReady()
  const check = checkListener({ limiter, peers, log: () => app!.log, isClosing: () => closing.hasBegun })
  addJsonApi(app, { limiter, peers, version })
  const onRefused = boundedReports((reason: string, leftOut) => {
    app?.log.warn(`a connection was refused: ${reason}${leftOut === 0 ? '' : `, and ${leftOut} others before it`}`)
  })
  const shared = { limiter, peers, onRefused, settings: () => live.settings }
  const grpc = settings.grpc && createGrpcServer({ ...shared, tls: grpcTls, isReady: isReadyNow })
  const spoe = settings.spoe && new SpoeServer(shared)
  const redis = settings.redis && new RespServer({ ...shared, users: usersOf(settings.redis, folder), tls: respTls })
  const connections = (): number => gatewayServer?.connections ?? 0
  reportServer(limiter, { callerSide: () => telemetry.callerSide({ connections }) })
  return {
    ...{ settings, app, grpc, spoe, redis },
    httpStats: () => telemetry.figures({ connections, upstreams: () => [], routes: () => [] }),
    reopenLogs: () => telemetry.reopen(),
    close: async () => {
      const { timeoutMs } = live.settings.shutdown
      await Promise.all([app.close(), grpc?.close(timeoutMs), spoe?.close(), redis?.close()])
      httpTls?.close()
      grpcTls?.close()
      respTls?.close()
      await telemetry.close()
    },
  }
}

function usersOf({ users }: RespSettings, folder: string): RespUsers {
  return new RespUsers(users, ({ name, password }) => readSecret(password, `the user ${name} of serve.redis`, folder))
}

/** The settings that a running decision server cannot change. */
export const atTheStart: readonly (readonly [setting: keyof ServeSettings, word: string])[] = [
  ...(['listen', 'grpc', 'spoe', 'redis', 'tls', 'admin', 'connections', 'accessLog', 'healthPath'] as const).map(
    word => [word, word] as const,
  ),
  ['headersBytes', 'headers'],
  ['maxWaitMs', 'maxWait'],
]

/** The settings in force; those of the ports stay as they were at the start. */
export class LiveServeSettings {
  #settings: ServeSettings | undefined

  get settings(): ServeSettings {
    return this.#settings!
  }

  readonly follow: SectionFollower = value => {
    const settings = (value as ServeSettings | undefined) ?? parseServeSettings({})
    for (const [name, word] of atTheStart) {
      if (this.#settings === undefined || isDeepStrictEqual(this.#settings[name], settings[name])) continue
      const remedy = 'leave it as it was, or start Diana again'
      throw new DianaError('BAD_RULES', `serve.${word} is read at the start only: ${remedy}`)
    }
    return () => {
      this.#settings = settings
    }
  }
}
