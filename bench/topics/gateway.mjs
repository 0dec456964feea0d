// The gateway in front of a service, beside bare proxies and beside nginx. Load, proxy and service are processes of their own on
// one machine, so the CPU that the proxy spends on a call is compared first.

import { sample, warmUp } from '../load/under-load.mjs'
import { fourRulesDocument } from '../servers/proxies.mjs'
import { startNginx } from '../servers/start-nginx.mjs'
import { startServer } from '../servers/start-server.mjs'
import { startWorkers } from '../servers/start-workers.mjs'

const CONNECTIONS = 64
const SLICES_PER_ROUND = 4
const SLICE_SECONDS = 1
const bare = 'bare node:http and undici'
const framework = '@fastify/http-proxy, no limits'
const ours = ['diana gateway, no rules', 'diana gateway, one rule', 'diana gateway, four rules']
const workers = { 'diana gateway, four rules, 2 workers': 2 }
const nginx = { 'nginx, no limits': false, 'nginx, limit_req': true }

export const programs = ['wrk', 'nginx']
export const peers = ['fastify', '@fastify/http-proxy']

export const about = `A service on \`node:http\`, called by \`wrk\` over ${CONNECTIONS} connections through one proxy at a time. Load, proxy and service share
this machine's cores, so the figure to compare is the CPU (user and system) that the proxy spends on a call. All proxies run
throughout and are called in turn, for a second each, so that a busy machine is busy for all of them.

- bare node:http and undici: the least that a correct proxy of these parts does. It streams bodies through undici's pool, drops
  hop-by-hop headers, adds X-Forwarded-For, and cancels a call whose caller disconnects. It limits and checks nothing.
- @fastify/http-proxy: configured only with the service's address; it counts nothing and checks nothing.
- nginx: one worker, connections to the service kept open, no access log; \`limit_req\` per account with room for all calls.
  A program of another kind (C, no filters in JavaScript), as a measure of what a proxy can cost.
- Diana: \`createGateway\`, configured with the service's address. Four rules: the whole service, each address, each account, each path.
  With 2 workers: \`diana start --workers 2\`, the CPU of all its processes; each worker asks the process that counts for both.
`

export const cases = [
  {
    name: 'a call through the proxy',
    unit: 'CPU µs/call',
    subjects: [bare, framework, ...ours, ...Object.keys(workers), ...Object.keys(nginx)],
    longestMs: 900_000,
  },
]

export const charted = cases.map(({ name }) => name)

export const marks = [
  { case: cases[0].name, ours: 'diana gateway, four rules', theirs: bare, times: 1.25 },
  ...ours.slice(1).map(one => ({ case: cases[0].name, ours: one, theirs: framework, times: 1 })),
]

/** Measures all subjects in turn, each a proxy in processes of its own before the same service. */
export async function measureTogether({ subjects }, rounds) {
  const service = await startServer('servers/proxies.mjs', 'service')
  const proxies = []
  try {
    for (const subject of subjects) proxies.push({ subject, ...(await start(subject, `127.0.0.1:${service.port}`)) })
    for (const proxy of proxies) await warmUp(proxy, CONNECTIONS)
    const samples = Object.fromEntries(subjects.map(subject => [subject, []]))
    for (let slice = 0; slice < rounds * SLICES_PER_ROUND; slice++) {
      for (const proxy of proxies) samples[proxy.subject].push(await sample(proxy, CONNECTIONS, SLICE_SECONDS))
    }
    return samples
  } finally {
    await Promise.all([...proxies, service].map(one => one.stop()))
  }
}

function start(subject, upstream) {
  if (subject in nginx) return startNginx({ upstream, limits: nginx[subject] })
  if (subject in workers) return startWorkers({ upstream, workers: workers[subject], document: fourRulesDocument })
  return startServer('servers/proxies.mjs', subject, { upstream: `http://${upstream}` })
}
