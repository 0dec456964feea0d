import type { ServerProgram } from '../server-program.ts'

/** All programs that take calls, by name. A worker loads the one that it runs. */
export const programs: Readonly<Record<ServerProgram['name'], () => Promise<ServerProgram>>> = {
  gateway: async () => (await import('../gateway-program.ts')).gatewayProgram,
  serve: async () => (await import('../serve-process.ts')).serveProgram,
}
