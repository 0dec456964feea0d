import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { adminOf } from 'diana-limiter/admin'
import { afterEach, expect, test } from 'vitest'
import { GatewayRig } from '../helpers/gateway-rig.ts'

const rig = new GatewayRig()
afterEach(() => rig.close())

/** A dimension of an operator's own that fails on some calls. */
function failingPlugin(): string {
  const path = join(rig.folder(), 'failing.mjs')
  writeFileSync(
    path,
    `export const dimensions = [{
      name: 'session',
      argument: 'none',
      read: call => {
        if (call.headers['x-session'] === 'broken') throw new Error('cannot be read')
        return call.headers['x-session']
      },
    }]`,
  )
  return path
}

test.each([
  [undefined, 200, { passed: 2, refused: 0 }],
  ['pass', 200, { passed: 2, refused: 0 }],
  ['refuse', 503, { passed: 0, refused: 2 }],
] as const)(
  'a call that the gateway fails to judge with whenFailed: %s gets %i, and others are judged',
  async (whenFailed, status, unjudged) => {
    const service = await rig.serve()
    const { url, limiter } = await rig.guard({
      plugins: [failingPlugin()],
      ...(whenFailed && { whenFailed }),
      rules: [{ id: 'session', by: 'session', limit: '1/h' }],
      gateway: { routes: [{ to: service.url }] },
    })
    const call = async (session: string): Promise<number> => {
      return (await fetch(url, { headers: { 'x-session': session } })).status
    }
    expect([await call('broken'), await call('broken')]).toEqual([status, status])
    expect([await call('ann'), await call('ann')]).toEqual([200, 503])
    expect(service.received.length).toBe(status === 200 ? 3 : 1)
    const stats = await adminOf(limiter).stats()
    expect(stats).toMatchObject({ unjudged, total: { allowed: 1, refused: 1 } })
  },
)
