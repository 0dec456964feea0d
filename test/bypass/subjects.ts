import { createServer } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { connect } from 'node:net'
import { createGateway } from '../../packages/gateway/src/gateway.ts'
import { createLimiter, type LimiterOptions } from '../../packages/limiter/src/create/create-limiter.ts'
import type { Limiter } from '../../packages/limiter/src/limiter.ts'
import { FilterService } from '../../packages/limiter/src/testing/filters/service.ts'
import type { FilterSuiteOptions, ServerUnderTest } from '../../packages/limiter/src/testing/filters/suite.ts'
import { listen } from '../helpers/filters/listen.ts'
import { nodeListener } from '../helpers/filters/node-listener.ts'
import { servers } from '../helpers/filters/servers.ts'

/** Everything that callers might talk their way around. */
export const subjects: Readonly<Record<string, FilterSuiteOptions>> = {
  ...servers,
  'the gateway': { start: startGateway },
}

async function startGateway(limiter: Limiter, service: FilterService): Promise<ServerUnderTest> {
  return await gatewayBefore(await listen(createServer(nodeListener(service))), limiter)
}

/** Starts a gateway in front of a service, which it closes at its end. */
export async function gatewayBefore(behind: ServerUnderTest, limiter: Limiter): Promise<ServerUnderTest> {
  // its types are those of the build, and these tests run on the sources
  const gateway = await createGateway({ limiter: limiter as never, upstream: `http://127.0.0.1:${behind.port}` })
  await gateway.listen({ port: 0, host: '127.0.0.1' })
  return {
    port: Number(new URL(gateway.listeningOrigin).port),
    close: async () => {
      gateway.server.closeAllConnections()
      await gateway.close()
      await behind.close()
    },
  }
}

/** A caller who sends every byte as he likes; the status of the answer, or 0 where the connection was cut. */
export type Caller = (target: string, headers?: readonly string[], method?: string) => Promise<number>

/** A server behind a filter with these rules, and a caller at its door. */
export async function withServer(
  subject: FilterSuiteOptions,
  words: LimiterOptions,
  test: (call: Caller, service: FilterService, port: number) => Promise<void>,
): Promise<void> {
  const limiter = await createLimiter(words)
  const service = new FilterService()
  const server = await subject.start(limiter, service)
  try {
    await test(subject.speaks === 'h2' ? speakHttp2(server.port) : speakHttp(server.port), service, server.port)
  } finally {
    await server.close()
    await limiter.close()
  }
}

function speakHttp(port: number): Caller {
  return async (target, headers = [], method = 'GET') => {
    const lines = ['Host: a', 'Connection: close', ...headers]
    return Number(
      /^HTTP\/1\.1 (\d+)/.exec(
        await sendRaw(port, `${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`),
      )?.[1] ?? 0,
    )
  }
}

/** Sends bytes and reads all that comes back. */
export async function sendRaw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1').write(bytes, 'latin1')
  let answer = ''
  try {
    for await (const piece of socket) answer += piece
  } catch {
    // a server may cut a connection that it does not like, and what it said before still counts
  }
  return answer
}

function speakHttp2(port: number): Caller {
  return async (target, headers = [], method = 'GET') => {
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    session.on('error', () => {})
    try {
      const told: Record<string, string | string[]> = { ':method': method, ':path': target }
      for (const line of headers) {
        const [name = '', value = ''] = [
          line.slice(0, line.indexOf(':')).toLowerCase(),
          line.slice(line.indexOf(':') + 1),
        ]
        // what is about a connection has no place in HTTP/2
        if (name !== 'connection') told[name] = name in told ? [told[name]!, value.trim()].flat() : value.trim()
      }
      return await new Promise<number>(resolve => {
        const stream = session.request(told, { endStream: true })
        stream.once('response', answer => resolve(Number(answer[':status'])))
        stream.once('error', () => resolve(0))
        stream.once('close', () => resolve(0))
        stream.resume()
      })
    } finally {
      session.destroy()
    }
  }
}
