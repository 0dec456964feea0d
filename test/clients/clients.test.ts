import { afterEach, describe, expect, test } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'
import { liveClients } from './live.ts'
import { programClients } from './programs.ts'
import { serverClients } from './servers.ts'

// `npm run long -- clients` tries every client that is installed, and with --all it fails if one is not
const which = process.env.DIANA_CLIENTS ?? 'set-up'

const rig = new GatewayRig()
afterEach(() => rig.close())

const clients = [...programClients, ...serverClients, ...liveClients]
const tried = clients.filter(client => which !== 'set-up' || client.isInstalledBySetUp)

describe('real clients and servers', () => {
  test.each(tried.map(client => [client.name, client] as const))(
    'the client %s works through the gateway as it does without',
    async (name, client) => {
      const version = client.version()
      if (version === undefined && which === 'installed') {
        console.log(`not installed: ${name}`)
        return
      }
      expect(version, `${name} is not installed`).toBeDefined()
      if (which !== 'set-up') console.log(`${name}: ${version}`)
      await client.use(rig)
    },
    120_000,
  )
})
