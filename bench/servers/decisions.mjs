// What the load of the topic serve asks: Diana's decision server, and servers that decide nothing.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openDecisionServer } from '../../packages/gateway/dist/serve/decision-server.js'
import { serveSection } from '../../packages/gateway/dist/serve/serve-settings.js'
import { createLimiter } from '../../packages/limiter/dist/index.js'
import { PLENTY } from '../frameworks/limits.mjs'

const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const answer = Buffer.concat([Buffer.from([0, 0, 0, 0, 20]), Buffer.alloc(20, 1)])

/** As the gateway counts: the whole system, each address, each account and each path. */
async function openServer(by, serve = {}) {
  const config = join(mkdtempSync(join(tmpdir(), 'diana-bench-')), 'diana.json')
  const rules = Object.entries(by).map(([id, dimension]) => ({
    ...{ id, limit: `${PLENTY}/m` },
    ...(dimension && { by: dimension }),
  }))
  writeFileSync(config, JSON.stringify({ identify: { account: ['header:x-account-id'] }, rules, serve }))
  const limiter = await createLimiter({ config, sections: [serveSection] })
  return await openDecisionServer({ limiter, folder: '.', isReady: () => true })
}

export const subjects = {
  'empty service on node:http2': () => {
    const server = createHttp2Server()
    server.on('stream', stream => {
      stream.resume()
      stream.on('end', () => {
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
        stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
        stream.end(answer)
      })
    })
    return server
  },
  'empty service, @grpc/grpc-js': () => {
    const { Server, ServerCredentials } = createRequire(new URL('../../package.json', import.meta.url))('@grpc/grpc-js')
    const asIs = bytes => bytes
    const codec = {
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    }
    const server = new Server()
    const definition = { path, requestStream: false, responseStream: false, ...codec }
    server.addService(
      { ShouldRateLimit: definition },
      { ShouldRateLimit: (_call, done) => done(null, answer.subarray(5)) },
    )
    let port
    return {
      listen: (_port, host, done) =>
        server.bindAsync(`${host}:0`, ServerCredentials.createInsecure(), (_error, bound) => {
          port = bound
          done()
        }),
      address: () => ({ port }),
    }
  },
  'diana serve, four rules': async () => {
    const by = { whole: undefined, ip: 'ip', account: 'account', path: 'attribute:path' }
    return (await openServer(by)).grpc.server
  },
  'diana serve, Redis protocol': async () => (await openServer({ account: 'account' }, { redis: {} })).redis.server,
  'nginx asks an empty node:http': () => createServer((_request, response) => response.end()),
  'nginx asks diana serve, four rules': async () => {
    const { app } = await openServer({ whole: undefined, ip: 'ip', account: 'account', path: 'resource' })
    await app.ready()
    return app.server
  },
}
