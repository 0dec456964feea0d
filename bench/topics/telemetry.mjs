// What it costs the gateway to record calls: metrics, which are always on, an access log, and traces.

import { underLoad } from '../load/under-load.mjs'
import { startServer } from '../servers/start-server.mjs'

const CONNECTIONS = 64
const logs = ['access log, json', 'access log, combined']

export const programs = ['wrk']

export const about = `The gateway with four rules, a service on \`node:http\`, and \`wrk\` with ${CONNECTIONS} connections, as under gateway above.

- metrics only: no log and no traces, which is the default. Metrics and request ids cannot be turned off.
- access log: a line per call, appended to a file.
- traces: spans of a share of all calls, sent to a collector on the same machine; trace ids are continued for all calls.
`

export const cases = [
  {
    name: 'a call that is recorded',
    unit: 'CPU µs/call',
    subjects: ['metrics only', ...logs, 'traces of 1 %', 'traces of all calls'],
  },
]

export const charted = cases.map(({ name }) => name)

export const allOurs = true

export const marks = [...logs, 'traces of 1 %'].map(ours => ({
  ...{ case: cases[0].name, ours, theirs: 'metrics only', times: 1.15 },
}))

/** Measures one subject, a gateway in a process of its own before a service in another. */
export async function measure(_case, subject) {
  const started = []
  const start = async (...args) => {
    const server = await startServer(...args)
    started.push(server)
    return server
  }
  try {
    const service = await start('servers/proxies.mjs', 'service')
    const collector = await start('telemetry-subjects.mjs', 'collector')
    const gateway = await start('telemetry-subjects.mjs', subject, {
      upstream: `http://127.0.0.1:${service.port}`,
      collector: `http://127.0.0.1:${collector.port}`,
    })
    return await underLoad(gateway, CONNECTIONS)
  } finally {
    for (const server of started.reverse()) await server.stop()
  }
}
