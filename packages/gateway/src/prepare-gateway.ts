import type { FilterPlugin } from './filters/filter.ts'
import { loadFilters } from './filters/load-filters.ts'
import { LiveSettings } from './live-settings.ts'
import type { GatewaySettings } from './settings/gateway-settings.ts'
import { TlsFiles } from './tls-files.ts'

export interface PrepareOptions {
  /** The folder that paths in the rule file are seen from. */
  readonly folder: string
  readonly onTrouble: (trouble: string) => void
}

/** What a gateway needs besides its rules, read from files and modules. */
export interface Prepared {
  readonly tls: TlsFiles | undefined
  readonly filters: readonly FilterPlugin[]
}

/** Reads certificates and loads filters; throws for those that cannot be used. */
export async function prepareGateway(settings: GatewaySettings, options: PrepareOptions): Promise<Prepared> {
  const tls = settings.tls && new TlsFiles(settings.tls, options)
  return { tls, filters: await loadFilters(settings.filters, { folder: options.folder, now: Date.now }) }
}

/** Throws what a start with these settings would throw, and starts nothing. */
export async function assertStartable(settings: GatewaySettings | undefined, folder: string): Promise<void> {
  if (settings === undefined) return
  new LiveSettings(undefined, () => {}).follow(settings)
  const { tls } = await prepareGateway(settings, { folder, onTrouble: () => {} })
  tls?.close()
}
