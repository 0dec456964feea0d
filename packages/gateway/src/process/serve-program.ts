import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createLimiter, type Limiter } from 'diana-limiter'
import { documentOf, rulesByEndings } from 'diana-limiter/gateway'
import { pino } from 'pino'
import { socketOf } from '../http/listening-socket.ts'
import { type DecisionServer, LiveServeSettings, openDecisionServer } from '../serve/decision-server.ts'
import { type ListenSettings, parseServeSettings, type ServeSettings, serveSection } from '../serve/serve-settings.ts'
import { logRefusals } from '../telemetry/refusal-log.ts'
import type { ServerProcess, ServerProcessOptions, ServerProgram } from './server-program.ts'

const usualHost = '127.0.0.1'
const usualPorts = { http: 8082, grpc: 8083, spoe: 8084, redis: 8085 } as const

/** `diana serve`. */
export const serveProgram: ServerProgram = {
  name: 'serve',
  section: serveSection,
  start: startServeProcess,
  followFixedSettings: () => new LiveServeSettings().follow,
  settingsOf,
}

async function startServeProcess(
  options: ServerProcessOptions,
  onLimiter: (limiter: Limiter) => void = () => {},
): Promise<ServerProcess> {
  const { config, counting, logger = false, onWarning } = options
  const limiter = await createLimiter({
    ...{ config, counting, sections: [serveSection] },
    maxStoreWaitMs: sections => settingsIn(sections).deadlineMs,
    maxWaitMs: sections => settingsIn(sections).maxWaitMs,
  })
  let ready = true
  let server: DecisionServer | undefined
  try {
    onLimiter(limiter)
    warnOfEndings(limiter, onWarning)
    if (logger !== false) logRefusals(limiter, pino({ name: 'diana', level: process.env.DIANA_LOG_LEVEL ?? 'info' }))
    server = await openDecisionServer({ limiter, folder: dirname(config), logger, onWarning, isReady: () => ready })
    const opened = server
    const also = await listen(opened, options)
    const { http: address, ...rest } = also
    return {
      ...{ address: address!, also: rest, limiter },
      isReady: () => ready,
      socket: async () => socketOf(opened.app.server),
      httpStats: opened.httpStats,
      reopenLogs: () => void opened.reopenLogs(),
      close: async () => {
        ready = false
        await pause(settingsOf(limiter).shutdown.delayMs)
        await opened.close()
        await limiter.close()
      },
    }
  } catch (error) {
    await server?.close()
    await limiter.close()
    throw error
  }
}

/** Returns what the rule file says of the decision server at this moment. */
function settingsOf(limiter: Limiter): ServeSettings {
  return (documentOf(limiter).section('serve') as ServeSettings | undefined) ?? parseServeSettings({})
}

function settingsIn(sections: Readonly<Record<string, unknown>>): ServeSettings {
  return (sections.serve as ServeSettings | undefined) ?? parseServeSettings({})
}

/** Opens the ports; returns their addresses. */
async function listen(server: DecisionServer, options: ServerProcessOptions): Promise<Record<string, string>> {
  const { settings, app, grpc, spoe, redis } = server
  const { host, port, grpcPort } = options
  const http = at(settings.listen, { host, port, usual: usualPorts.http })
  await app.ready()
  const addresses: Record<string, string> = {
    http: `${settings.tls ? 'https' : 'http'}://${await open(app.server, http, options.fd)}`,
  }
  if (grpc)
    addresses.grpc = await open(grpc.server, at(settings.grpc, { host, port: grpcPort, usual: usualPorts.grpc }))
  if (spoe)
    addresses.spoe = await open(spoe.server, at(settings.spoe, { host, port: undefined, usual: usualPorts.spoe }))
  if (redis)
    addresses.redis = await open(redis.server, at(settings.redis, { host, port: undefined, usual: usualPorts.redis }))
  return addresses
}

function at(
  settings: ListenSettings = {},
  given: { readonly host: string | undefined; readonly port: number | undefined; readonly usual: number },
): { readonly host: string; readonly port: number } {
  return {
    // empty is not set, as in a shell
    host: given.host ?? settings.host ?? (process.env.DIANA_HOST || usualHost),
    port: given.port ?? settings.port ?? given.usual,
  }
}

async function open(server: Server, { host, port }: { host: string; port: number }, fd?: number): Promise<string> {
  server.listen(fd === undefined ? { host, port } : { fd })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw Object.assign(error as Error, { host, port })
  }
  const { address, port: opened, family } = server.address() as AddressInfo
  return `${family === 'IPv6' ? `[${address}]` : address}:${opened}`
}

/** Warns that no proxy reports how calls end. */
function warnOfEndings(limiter: Limiter, onWarning: ((warning: string) => void) | undefined): void {
  const ids = rulesByEndings(limiter)
  if (ids.length === 0) return
  onWarning?.(`proxies do not report how calls end: the rules ${ids.join(', ')} count each call as one that has ended`)
}
