import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import type { Http2Server, ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Server, Socket } from 'node:net'
import type { ServerUnderTest } from '../../../packages/limiter/src/testing/filters/suite.ts'

/** Lets a server listen on a free port of this machine, until it is closed with all its connections. */
export async function listen(server: HttpServer | Http2Server): Promise<ServerUnderTest> {
  const open = new Set<Socket | ServerHttp2Session>()
  const remember = (one: Socket | ServerHttp2Session): void => {
    open.add(one)
    one.once('close', () => open.delete(one))
  }
  const base: Server = server
  base.on('connection', remember)
  base.on('session', remember)
  base.listen({ port: 0, host: '127.0.0.1', backlog: 1024 })
  await once(base, 'listening')
  return {
    port: (base.address() as AddressInfo).port,
    close: async () => {
      const closed = once(base, 'close')
      base.close()
      for (const one of open) one.destroy()
      await closed
    },
  }
}
