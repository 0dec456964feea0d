import { DianaError } from 'diana-limiter'
import type { LiveDocument } from 'diana-limiter/gateway'
import { ServerTls, type TlsOptionsOfFiles } from './http/tls/server-tls.ts'
import type { FilterPlugin } from './inbound/filters/filter.ts'
import { loadFilters } from './inbound/filters/load-filters.ts'
import { LiveSettings } from './services/routes/route-table.ts'
import type { GatewaySettings } from './settings/gateway-settings.ts'

export type PrepareOptions = TlsOptionsOfFiles

/** Everything that a gateway needs besides its rules, read from files and modules. */
export interface Prepared {
  readonly tls: ServerTls | undefined
  readonly filters: readonly FilterPlugin[]
}

/** Reads certificates and loads filters; throws for those that cannot be used. */
export async function prepareGateway(settings: GatewaySettings, options: PrepareOptions): Promise<Prepared> {
  const tls = settings.tls && new ServerTls(settings.tls, options)
  return { tls, filters: await loadFilters(settings.filters, { folder: options.folder, now: Date.now }) }
}

/** Throws what a start with these settings would throw, and starts nothing. */
export async function assertStartable(
  settings: GatewaySettings | undefined,
  options: Omit<PrepareOptions, 'onTrouble'>,
): Promise<void> {
  if (settings === undefined) return
  const files = { ...options, onTrouble: () => {} }
  new LiveSettings(undefined, () => {}, { tlsFiles: files }).follow(settings)
  const { tls } = await prepareGateway(settings, files)
  tls?.close()
}

/**
 * Throws if connections are to begin with PROXY headers and no addresses are named that may write them. A number of proxies will
 * not do: any caller could write a header, and behind one the X-Forwarded-For of the caller would be believed.
 */
export function assertProxyProtocol(
  settings: GatewaySettings | undefined,
  trustProxy: LiveDocument['trustProxy'],
): void {
  if (!settings?.listen.proxyProtocol || (typeof trustProxy !== 'number' && trustProxy.length > 0)) return
  const remedy = 'write trustProxy: [10.0.0.0/24], with the networks of your proxies'
  throw new DianaError('BAD_RULES', `gateway.listen.proxyProtocol needs the addresses of trusted proxies: ${remedy}`)
}
