import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import type { FastifyPluginAsync } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { GatewayOptions } from '../../../packages/gateway/src/gateway.ts'
import { GatewayRig } from '../../helpers/gateway-rig.ts'
import { Http2Caller } from '../../helpers/http2-rig.ts'

/** The head of an answer reaches the caller when the service has sent it, and does not wait for the first byte of the body. */

const rig = new GatewayRig()
const waiting: ServerResponse[] = []
let service: string

beforeAll(async () => {
  const served = await rig.serve((incoming, response) => {
    const type = incoming.url === '/events' ? 'text/event-stream' : 'text/plain'
    response.writeHead(200, { 'content-type': type, 'x-from': 'service' })
    response.flushHeaders()
    waiting.push(response)
  })
  service = served.url
})
afterAll(() => rig.close())

const ofApplication = (plugin: FastifyPluginAsync): never => {
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true }) as never
}

/** The chains of filters through which an answer may pass. */
const chains: Readonly<Record<string, Partial<GatewayOptions>>> = {
  'no filter': {},
  'a filter that reads requests': {
    filters: [ofApplication(async app => void app.addHook('onRequest', async () => {}))],
  },
  'a filter that waits before an answer is sent': {
    filters: [
      ofApplication(async app => {
        app.addHook('onSend', async (_request, reply, payload) => {
          await new Promise(resolve => setImmediate(resolve))
          reply.header('x-added', 'late')
          return payload
        })
      }),
    ],
  },
  'a filter that puts another stream in the place of the answer': {
    filters: [
      ofApplication(async app => {
        app.addHook('onSend', async (_request, _reply, payload) => (payload as PassThrough).pipe(new PassThrough()))
      }),
    ],
  },
}

describe.each(Object.entries(chains))('through %s', (chain, options) => {
  describe.each([false, true])('with compression: %s', compression => {
    let url: string
    beforeAll(async () => {
      url = (await rig.guard({ gateway: { compression, routes: [{ to: service }] } }, options)).url
    })

    it.each(['/events', '/text'])(
      'the head of %s over HTTP/1.1 arrives before the service writes its body',
      async path => {
        const asked = request(`${url}${path}`, { headers: { 'accept-encoding': 'gzip' }, agent: false })
        asked.end()
        const [answer] = (await once(asked, 'response')) as [IncomingMessage]
        expect([answer.statusCode, answer.headers['x-from']]).toEqual([200, 'service'])
        if (chain.includes('waits')) expect(answer.headers['x-added']).toBe('late')
        // only now, so that a head that waits for a byte would never come
        waiting.pop()!.end('data: later\n\n')
        expect((await answer.toArray()).length).toBeGreaterThan(0)
      },
    )

    it('the head of an event stream over HTTP/2 arrives before the service writes its body', async () => {
      const caller = new Http2Caller(url)
      const stream = caller.open({ ':path': '/events' })
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
      expect([headers[':status'], headers['x-from']]).toEqual([200, 'service'])
      waiting.pop()!.end('data: later\n\n')
      expect(Buffer.concat(await stream.toArray()).toString()).toBe('data: later\n\n')
      await caller.close()
    })
  })
})
