import type { Limiter, Section } from 'diana-limiter'
import type { SectionFollower } from 'diana-limiter/gateway'
import type { AdminSettings } from '../settings/admin-settings.ts'
import type { GatewaySettings } from '../settings/gateway-settings.ts'
import type { GatewayProcess, GatewayProcessOptions } from './gateway-process.ts'

/** What a process does that takes calls: it forwards them, or it answers proxies. Supervision, admin API and ending are the same. */
export interface ServerProgram {
  readonly name: 'gateway' | 'serve'
  /** Its part of the rule file. */
  readonly section: Section
  /** Starts it in this process; `onLimiter` gets its limiter before calls come. */
  start(options: GatewayProcessOptions, onLimiter?: (limiter: Limiter) => void): Promise<GatewayProcess>
  /** For a process that takes no calls itself, but reads and writes the rule file: holds it to what workers can change. */
  followFixedSettings(): SectionFollower
  /** What the rule file says of it at this moment, as far as every program has it. */
  settingsOf(limiter: Limiter): ServerSettings
}

export interface ServerSettings {
  readonly shutdown: GatewaySettings['shutdown']
  readonly admin?: AdminSettings | undefined
}
