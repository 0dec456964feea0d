import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startBehindNginx } from './behind-nginx.mjs'
import { startGateway } from './gateway.mjs'
import { AttackingConnection } from './round/connection.mjs'
import { deaths } from './round/oracle.mjs'
import { signGet } from './sign.mjs'

const script = fileURLToPath(new URL('load.lua', import.meta.url))
const serviceProgram = fileURLToPath(new URL('service-process.mjs', import.meta.url))
const wrkConnections = 8
const usualAddresses = 4
const headStartMs = 500
const target = '/shared?answer=ok'
const token = 'an admin token that nobody guesses'

/**
 * One attack on a gateway of its own, and what wrk saw of it. An attack has a name, a number of connections (each is opened again
 * when its steps are over), `steps(index)` as in themes.mjs, and may have: `answers` of the service, `addresses` that it comes
 * from, a `port`, a `filter` that the gateway uses, `isBehindNginx` if nginx asks `diana serve` in place of a gateway, and `judge`, which
 * looks at the statuses that attackers got.
 */
export async function measure(attack, { seconds, workers }) {
  const serving = fork(serviceProgram)
  const [services] = await once(serving, 'message')
  serving.send(attack.answers ?? [])
  const { filter = 'none', isBehindNginx = false } = attack
  const gateway = isBehindNginx
    ? await startBehindNginx({ workers }, services)
    : await startGateway({ workers, filter }, services, { admin: { port: 0, token } })
  try {
    const attackers = new Attackers(attack, gateway)
    await pause(headStartMs)
    let peakBytes = 0
    const sampling = setInterval(() => {
      peakBytes = Math.max(peakBytes, gateway.residentBytes)
    }, 250)
    const load = await runWrk(gateway.url, { seconds, isSigned: filter === 'hmac' })
    clearInterval(sampling)
    const { statuses, connections } = attackers.stop()
    const judged = attack.judge?.({ statuses, seconds: seconds + headStartMs / 1000 })
    const faults = [
      ...(load.failed > 0 ? [`${load.failed} of ${load.calls} well-behaved calls failed`] : []),
      ...(load.calls === 0 ? ['wrk got no answer at all'] : []),
      ...(judged === undefined ? [] : [judged]),
      ...deaths(gateway).map(({ text }) => text),
    ]
    return { ...load, statuses, connections, peakBytes, faults }
  } finally {
    await gateway.close()
    serving.disconnect()
  }
}

/** Connections that play the steps of an attack again and again until they are stopped. */
class Attackers {
  #statuses = new Map()
  #open = new Set()
  #isRunning = true
  #connections = 0

  constructor(attack, gateway) {
    const port = attack.port === 'admin' ? Number(new URL(gateway.admin).port) : gateway.port
    for (let index = 0; index < attack.connections; index++) void this.#run(attack, { port, index })
  }

  stop() {
    this.#isRunning = false
    for (const connection of this.#open) connection.leave()
    return { statuses: this.#statuses, connections: this.#connections }
  }

  async #run({ steps, connections, addresses = usualAddresses }, { port, index }) {
    for (let turn = 0; this.#isRunning; turn++) {
      const from = `127.0.0.${2 + (index % addresses)}`
      const connection = new AttackingConnection({ port }, { from, statuses: this.#statuses })
      this.#connections++
      this.#open.add(connection)
      await Promise.race([connection.play(steps(index + turn * connections)), connection.over])
      connection.leave()
      this.#open.delete(connection)
      await pause(20)
    }
  }
}

async function runWrk(url, { seconds, isSigned }) {
  const folder = mkdtempSync(join(tmpdir(), 'diana-attack-'))
  try {
    const file = join(folder, 'requests')
    // a signature is good once: more than wrk can send
    const calls = Array.from({ length: isSigned ? seconds * wrkConnections * 150 : 1 }, () =>
      isSigned ? signGet(target) : {},
    )
    const line = headers =>
      Object.entries({ accept: '*/*', ...headers })
        .map(pair => pair.join('='))
        .join('\t')
    writeFileSync(file, calls.map(line).join('\n'))
    const args = ['-t1', `-c${wrkConnections}`, `-d${seconds}s`, '-T', '2s', '-s', script, url + target, '--', file]
    // wrk fails where nobody listens, and then has measured nothing
    const { stdout } = await promisify(execFile)('wrk', args).catch(() => ({ stdout: '' }))
    const [sent = 0, refused = 0, lost = 0, p50Ms = 0, p99Ms = 0] =
      /MEASURED (.*)/.exec(stdout)?.[1].split(' ').map(Number) ?? []
    return { calls: sent, failed: refused + lost, p50Ms, p99Ms }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
