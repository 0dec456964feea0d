import { connect, type Socket } from 'node:net'
import { request } from 'undici'
import type { GatewayRig, Guarded } from '../../helpers/gateway-rig.ts'

/** The bytes of a call without a body. */
export const call = (target: string, more: readonly string[] = [], method = 'GET'): string =>
  `${[`${method} ${target} HTTP/1.1`, 'Host: a', ...more].join('\r\n')}\r\n\r\n`

export const upgradeTo = (protocol: string): string[] => ['Connection: Upgrade', `Upgrade: ${protocol}`]

/** The headers of a WebSocket handshake. */
export const handshake: readonly string[] = [
  ...upgradeTo('websocket'),
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
]

/** The status of a call that a well-behaved caller makes. */
export async function isServed(url: string, headersTimeout = 3000): Promise<number> {
  const { statusCode, body } = await request(url, { headersTimeout })
  await body.dump()
  return statusCode
}

/** A plugin of a user, so that answers go through the hooks of Fastify. */
export const hooked = {
  filters: [
    Object.assign(
      (app: { addHook(name: string, hook: unknown): void }, _: object, done: () => void) => {
        app.addHook('onSend', async (_request: unknown, _reply: unknown, payload: unknown) => payload)
        done()
      },
      { [Symbol.for('skip-override')]: true },
    ),
  ],
} as never

/** Opens connections to a gateway, which the rig ends. */
export const socketOpener =
  (rig: GatewayRig) =>
  ({ port }: Pick<Guarded, 'port'>): Socket => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    rig.later(() => socket.destroy())
    return socket
  }
