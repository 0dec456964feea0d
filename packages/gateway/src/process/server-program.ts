import type { Limiter, Section } from 'diana-limiter'
import type { SectionFollower } from 'diana-limiter/gateway'
import type { AdminSettings } from '../settings/admin-settings.ts'
import { followFixedSettings } from '../settings/fixed-settings.ts'
import { type GatewaySettings, gatewaySection } from '../settings/gateway-settings.ts'
import { settingsOf } from '../settings/settings-of.ts'
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

/** `diana start`. A supervisor of workers forwards no calls itself, so the modules that do are loaded by `start`. */
export const gatewayProgram: ServerProgram = {
  name: 'gateway',
  section: gatewaySection,
  async start(options, onLimiter) {
    const { startGatewayProcess } = await import('./gateway-process.ts')
    return await startGatewayProcess(options, onLimiter)
  },
  followFixedSettings,
  settingsOf,
}

/** All programs that take calls, by name. A worker loads the one that it runs. */
export const programs: Readonly<Record<ServerProgram['name'], () => Promise<ServerProgram>>> = {
  gateway: async () => (await import('./server-program.ts')).gatewayProgram,
  serve: async () => (await import('./serve-process.ts')).serveProgram,
}
