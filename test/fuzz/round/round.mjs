import { setTimeout as pause } from 'node:timers/promises'
import { Http2Calls, OrderlyCalls } from '../http2/calls.mjs'
import { Caller } from './caller.mjs'
import { AttackingConnection } from './connection.mjs'
import { countsOf, inspect } from './oracle.mjs'

/** After so long all attackers are made to leave. */
const roundMs = 15_000
const goodWithinMs = 1000
/** A service that is taken up by others may be answered for, but nobody waits longer than this. */
const sharedWithinMs = 3000
const sampleMs = 250

/** Plays a plan against a gateway, and says what went wrong. */
export async function playRound(plan, gateway, services) {
  const { hostile } = services
  hostile.setAnswers(plan.answers)
  const statuses = new Map()
  const callers = startCallers(gateway)
  const before = hostile.requests
  let peakBytes = 0
  const sampling = setInterval(() => {
    peakBytes = Math.max(peakBytes, gateway.residentBytes)
  }, sampleMs)
  const attackers = plan.connections.flatMap(({ from, times, steps, calls }) =>
    Array.from({ length: times }, (_, index) => {
      const address = from === 'many' ? `127.0.2.${1 + (index % 60)}` : from
      return calls
        ? { steps: calls, connection: new OrderlyCalls(gateway, address) }
        : { steps, connection: new AttackingConnection(gateway, { from: address, protocol: plan.protocol, statuses }) }
    }),
  )
  const playing = Promise.all(attackers.map(({ connection, steps }) => connection.play(steps)))
  const complaints = await Promise.race([playing, pause(roundMs, []), ended(gateway)])
  for (const { connection } of attackers) connection.leave()
  await Promise.all(callers.map(caller => caller.stop()))
  clearInterval(sampling)
  const unanswered = complaints.flatMap((text, index) =>
    text === undefined ? [] : [{ kind: 'unanswered', text: `${text} to ${describe(attackers[index].steps, plan)}` }],
  )
  const findings = [
    ...callers.flatMap(({ failures }) => failures.slice(0, 3)),
    ...unanswered.slice(0, 3),
    ...(await inspect(gateway, services)),
  ]
  const counts = {
    ...countsOf(plan),
    forwarded: hostile.requests - before,
    wellBehaved: callers.reduce((sum, { calls }) => sum + calls, 0),
  }
  return { findings, counts, statuses, peakBytes }
}

/** Well-behaved callers beside the attackers: on kept connections of both versions, on new ones, and of the service under attack. */
function startCallers(gateway) {
  const isServed = ({ outcome, body, token }) => outcome === '200' && body === token
  const isAnswered = ({ outcome, body }) =>
    // services write 408 on an idle connection before they close it, which may meet the next call
    outcome === '200' ? body === 'ok' : ['408', '502', '503', '504'].includes(outcome)
  return [
    new Caller({ gateway, path: '/good/kept', everyMs: 50, accepts: isServed, withinMs: goodWithinMs }),
    new Caller({ gateway, path: '/good/new', everyMs: 200, accepts: isServed, withinMs: goodWithinMs, isFresh: true }),
    new Caller({
      ...{ gateway, path: '/good/http2', everyMs: 100, accepts: isServed, withinMs: goodWithinMs },
      calls: new Http2Calls(gateway),
    }),
    new Caller({ gateway, path: '/shared?answer=ok', everyMs: 200, accepts: isAnswered, withinMs: sharedWithinMs }),
  ]
}

async function ended(gateway) {
  while (!gateway.hasEnded && gateway.lost.length === 0) await pause(50)
  return []
}

/** What was sent first, and what the service says to it. */
function describe(steps, { answers }) {
  if (steps[0].write === undefined) return `${steps.length} calls`
  const [, named] = /answer=(\d+)/.exec(steps[0].write) ?? []
  const answer = named === undefined ? 'an answer by its target' : JSON.stringify(answers[named]).slice(0, 250)
  return `${JSON.stringify(steps[0].write.slice(0, 120))}, which the service answers by ${answer}`
}
