// The gateway with what it may record of each call, and a collector that takes spans and forgets them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from '../packages/limiter/dist/index.js'
import { PLENTY } from './frameworks/limits.mjs'

const keys = { whole: undefined, account: 'account', device: 'device', resource: 'resource' }

/** A gateway by a rule file, which is where telemetry is turned on. */
const gateway = settings => async options => {
  const { createGateway, gatewaySection } = await import('../packages/gateway/dist/gateway.js')
  const folder = mkdtempSync(join(tmpdir(), 'diana-bench-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const config = join(folder, 'diana.json')
  const document = {
    identify: { account: ['header:x-account-id'], device: ['header:x-device-id'] },
    rules: Object.entries(keys).map(([id, by]) => ({ id, by, limit: `${PLENTY}/m` })),
    gateway: { routes: [{ to: options.upstream }], ...settings(options) },
  }
  writeFileSync(config, JSON.stringify(document))
  const limiter = await createLimiter({ config, sections: [gatewaySection] })
  const app = await createGateway({ limiter, folder })
  await app.ready()
  return app.server
}

const tracing = sample => gateway(({ collector }) => ({ tracing: { endpoint: collector, sample } }))

export const subjects = {
  collector: () =>
    createServer((request, response) => {
      request.resume().on('end', () => response.end('{}'))
    }),
  'metrics only': gateway(() => ({})),
  'access log, json': gateway(() => ({ accessLog: { format: 'json', to: 'access.log' } })),
  'access log, combined': gateway(() => ({ accessLog: { format: 'combined', to: 'access.log' } })),
  'traces of 1 %': tracing(0.01),
  'traces of all calls': tracing(1),
}
