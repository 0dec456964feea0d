import { followFixedSettings } from '../settings/fixed-settings.ts'
import { gatewaySection } from '../settings/gateway-settings.ts'
import { settingsOf } from '../settings/settings-of.ts'
import type { ServerProgram } from './server-program.ts'

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
