// The gateway in front of a service, beside a bare proxy on the same framework and beside nginx. Load, proxy and service are
// processes of their own on one machine, so the CPU that the proxy spends on a call is compared first.

import { startNginx } from '../start-nginx.mjs'
import { startServer } from '../start-server.mjs'
import { underLoad } from '../under-load.mjs'

const CONNECTIONS = 64
const proxies = ['@fastify/http-proxy, no limits', 'diana gateway, one rule', 'diana gateway, four rules']
const nginx = { 'nginx, no limits': false, 'nginx, limit_req': true }

export const programs = ['wrk', 'nginx']
export const peers = ['fastify', '@fastify/http-proxy']

export const about = `A service on \`node:http\`, called by \`wrk\` over ${CONNECTIONS} connections through one proxy process. Load, proxy and service share
this machine's cores, so the figure to compare is the CPU that the proxy spends on a call.

- @fastify/http-proxy: only told where the service is; it counts nothing and checks nothing.
- nginx: one worker, connections to the service kept open, no log of calls; \`limit_req\` per account with room for all calls.
  A program of another kind (C, no place for filters in JavaScript), as a measure of what a proxy can cost.
- Diana: \`createGateway\` with the rules of the filters above, told where the service is.
`

export const cases = [
  { name: 'a call through the proxy', unit: 'CPU µs/call', subjects: [...proxies, ...Object.keys(nginx)] },
]

export const charted = cases.map(({ name }) => name)

export const marks = proxies.slice(1).map(ours => ({ case: cases[0].name, ours, theirs: proxies[0], times: 1 }))

/** Measures one subject, a proxy in a process of its own before a service in another. */
export async function measure(_case, subject) {
  const service = await startServer('proxies.mjs', 'service')
  try {
    const upstream = `127.0.0.1:${service.port}`
    const proxy =
      subject in nginx
        ? await startNginx({ upstream, limits: nginx[subject] })
        : await startServer('proxies.mjs', subject, { upstream: `http://${upstream}` })
    try {
      return await underLoad(proxy, CONNECTIONS)
    } finally {
      await proxy.stop()
    }
  } finally {
    await service.stop()
  }
}
