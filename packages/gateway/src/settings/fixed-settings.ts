import { isDeepStrictEqual } from 'node:util'
import { DianaError } from 'diana-limiter'
import type { SectionFollower } from 'diana-limiter/gateway'
import type { GatewaySettings } from './gateway-settings.ts'
import { settingsIn } from './settings-of.ts'

/** The settings that a running gateway cannot change: its server and its chain of filters are built once. */
export const atTheStart: Readonly<Record<string, (settings: GatewaySettings) => unknown>> = {
  listen: ({ listen }) => listen,
  tls: ({ tls }) => tls,
  http2: ({ http2 }) => http2,
  admin: ({ admin }) => admin,
  filters: ({ filters }) => filters,
  accessLog: ({ accessLog }) => accessLog,
  tracing: ({ tracing }) => tracing,
  'limits.headers': ({ limits }) => limits.headersBytes,
}

/** Holds the rule file to what workers can change, for a process that takes no calls itself, but reads and writes that file. */
export function followFixedSettings(): SectionFollower {
  let inForce: GatewaySettings | undefined
  return value => {
    const settings = settingsIn(value)
    if (inForce) assertChangeable(inForce, settings)
    return () => {
      inForce = settings
    }
  }
}

/** Throws if `after` changes what is read at the start only. */
export function assertChangeable(before: GatewaySettings, after: GatewaySettings): void {
  for (const [word, read] of Object.entries(atTheStart)) {
    if (isDeepStrictEqual(read(before), read(after))) continue
    const remedy = 'leave it as it was, or start Diana again'
    throw new DianaError('BAD_RULES', `gateway.${word} is read at the start only: ${remedy}`)
  }
}
