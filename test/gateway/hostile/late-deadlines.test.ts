import { afterAll, expect, test } from 'vitest'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { Http2Caller } from '../../helpers/http2-rig.ts'

const rig = new GatewayRig()
afterAll(() => rig.close())

test('a deadline of a gRPC caller that passes after the gateway has answered itself changes nothing', async () => {
  const service = await rig.serve(() => {})
  const connections = { max: 1, queue: { timeout: '20ms' } }
  const { url } = await rig.guard({ gateway: { routes: [{ to: service.url, connections }] } })
  const errors: unknown[] = []
  const note = (error: unknown): void => void errors.push(error)
  const listeners = process.listeners('uncaughtException')
  process.removeAllListeners('uncaughtException')
  process.on('uncaughtException', note)
  const caller = new Http2Caller(url)
  try {
    const types = ['application/grpc', 'application/grpc-web', 'application/grpc-web-text', 'application/grpc+proto']
    const streams = Array.from({ length: 100 }, (_, at) =>
      caller.open(
        {
          ...{ ':method': 'POST', ':path': '/a.B/C', te: 'trailers' },
          ...{ 'content-type': types[at % types.length], 'grpc-timeout': `${20 + (at % 60)}m` },
        },
        true,
      ),
    )
    await new Promise(resolve => setTimeout(resolve, 15))
    // a busy process: queues and deadlines time out in the same turn
    const until = performance.now() + 150
    while (performance.now() < until);
    await new Promise(resolve => setTimeout(resolve, 300))
    for (const stream of streams) stream.destroy()
  } finally {
    await caller.close()
    process.off('uncaughtException', note)
    for (const listener of listeners) process.on('uncaughtException', listener)
  }
  expect(errors).toEqual([])
})
