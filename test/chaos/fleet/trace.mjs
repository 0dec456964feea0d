import { FailoverStore } from '../../../packages/limiter/dist/stores/failover/failover-store.js'
import { Lease } from '../../../packages/limiter/dist/stores/leases/lease.js'
import { moment } from './clock.mjs'

/** A process that decides more calls records no more events, and says so. */
const MOST_EVENTS = 200_000

/**
 * Records from now on by which right each call of this process is decided: the answer of the store, a lease, its share of the limit, or
 * its allowance while answers are late; and what the store said.
 */
export function recordTrace() {
  const trace = { events: [], isCut: false }
  const note = event => {
    if (trace.events.length < MOST_EVENTS) trace.events.push(event)
    else trace.isCut = true
  }
  const { take } = FailoverStore.prototype
  FailoverStore.prototype.take = function (charges, now) {
    const noteAll = allowed => {
      for (const charge of charges) if (charge.cost > 0) note(decisionOf(this, charge, allowed))
      return allowed
    }
    const answer = take.call(this, charges, now)
    return typeof answer === 'boolean' ? noteAll(answer) : answer.then(noteAll)
  }
  const { ask, spend, answered } = Lease.prototype
  Lease.prototype.ask = function (...terms) {
    const request = ask.apply(this, terms)
    note({ what: 'ask', end: moment(), caller: callerOf(this) })
    return request
  }
  Lease.prototype.spend = function (charge, now) {
    note({ what: 'use', end: moment(), caller: callerOf(this), cost: charge.cost })
    return spend.call(this, charge, now)
  }
  Lease.prototype.answered = function (answer, now) {
    note({ what: 'grant', end: moment(), caller: callerOf(this), amount: answer.amount })
    return answered.call(this, answer, now)
  }
  return trace
}

function callerOf({ counter, key }) {
  return `${counter.tag.split(':')[0]} ${key}`
}

function decisionOf(store, charge, allowed) {
  const { healthy, fleet } = store.status
  const by = { fleet: 'store', lease: 'lease', memory: healthy ? 'late' : 'share', none: 'none' }[charge.countedBy]
  const { size, known: isKnown } = fleet
  return {
    what: 'call',
    end: moment(),
    caller: callerOf(charge),
    by,
    allowed,
    left: charge.remaining[0],
    size,
    isKnown,
  }
}
