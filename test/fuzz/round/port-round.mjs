import { setTimeout as pause } from 'node:timers/promises'
import { targets } from '../targets.mjs'
import { AttackingConnection } from './connection.mjs'
import { clientSockets, countsOf, deaths, internalErrors } from './oracle.mjs'

const roundMs = 8000
/** After a flood, a caller that has left is found by the PING that is repeated after 0.8, 1.6 and 3.2 s. */
const settleMs = 12_000

/** Plays a plan against one port of `diana serve`, and says what went wrong. */
export async function playPortRound(plan, server, target) {
  const { portOf, check } = targets[target]
  const port = portOf(server)
  const statuses = new Map()
  let peakBytes = 0
  const sampling = setInterval(() => {
    peakBytes = Math.max(peakBytes, server.residentBytes)
  }, 250)
  const attackers = plan.connections
    .filter(({ calls }) => calls === undefined)
    .flatMap(({ from, times, steps, mustEnd }) =>
      Array.from({ length: Math.min(times, 100) }, (_, index) => {
        const address = from === 'many' ? `127.0.2.${1 + (index % 60)}` : from
        return { steps, mustEnd, connection: new AttackingConnection({ port }, { from: address, statuses }) }
      }),
    )
  const findings = []
  const plays = attackers.map(async ({ connection, steps, mustEnd }) => {
    const fault = await connection.play(steps)
    if (mustEnd && fault !== undefined)
      findings.push({ kind: 'failed', text: `a caller that does all right: ${fault}` })
  })
  await Promise.race([Promise.all(plays), pause(roundMs)])
  for (const { connection } of attackers) connection.leave()
  clearInterval(sampling)
  const until = performance.now() + settleMs
  while (!server.hasEnded && clientSockets(port) > 0 && performance.now() < until) await pause(100)
  const left = server.hasEnded ? 0 : clientSockets(port)
  if (left > 0) findings.push({ kind: 'left over', text: `${left} connections of callers who have left are open` })
  const fault = server.hasEnded ? undefined : await check(server)()
  if (fault !== undefined) findings.push({ kind: 'failed', text: `a new caller of ${target}: ${fault}` })
  findings.push(...deaths(server), ...(await internalErrors(server)))
  return { findings, counts: countsOf(plan), statuses, peakBytes }
}
