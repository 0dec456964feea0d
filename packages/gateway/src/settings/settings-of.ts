import type { Limiter } from 'diana-limiter'
import { documentOf } from 'diana-limiter/gateway'
import { type GatewaySettings, parseGatewaySettings } from './gateway-settings.ts'

/** Returns what the rule file says of the gateway at this moment. */
export function settingsOf(limiter: Limiter): GatewaySettings {
  return settingsIn(documentOf(limiter).section('gateway'))
}

/** Returns the section of the rule file, or the settings of a file without one. */
export function settingsIn(section: unknown): GatewaySettings {
  return (section as GatewaySettings | undefined) ?? parseGatewaySettings({})
}
