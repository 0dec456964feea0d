import { settingsOf, startGatewayProcess } from '../lifecycle/gateway-process.ts'
import type { ServerProgram } from '../lifecycle/server-program.ts'
import { followFixedSettings } from '../live-settings.ts'
import { serveProgram } from '../serve/serve-process.ts'
import { gatewaySection } from '../settings/gateway-settings.ts'

export const gatewayProgram: ServerProgram = {
  name: 'gateway',
  section: gatewaySection,
  start: startGatewayProcess,
  followFixedSettings,
  settingsOf,
}

/** All programs that take calls, by name. */
export const programs: Readonly<Record<ServerProgram['name'], ServerProgram>> = {
  gateway: gatewayProgram,
  serve: serveProgram,
}
