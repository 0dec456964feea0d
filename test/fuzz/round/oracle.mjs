import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { slots } from '../gateway.mjs'
import { callOnce } from './caller.mjs'
import { startFairTime } from './fair-time.mjs'

/** How long the gateway may take to let go of what callers have left. */
const settleMs = 4000
const serveMs = 1000
/** The most that one process may hold at any moment of a round. */
const mostResidentBytes = 768e6
/** Heaps after a garbage collection may differ by so much from one third of the rounds to the last. */
const growthBytes = 15e6

const established = '01'
const closeWait = '08'

/** What the gateway holds although all its callers have left, as sentences; empty once it holds nothing. */
async function leftovers(gateway, { hostile }) {
  const found = []
  const sockets = clientSockets(gateway.port)
  if (sockets > 0) found.push(`${sockets} connections of callers who have left are open`)
  if (hostile.busy > 0) found.push(`${hostile.busy} connections to the service carry calls whose callers have left`)
  const held = slots - (await remainingSlots(gateway.admin))
  if (held !== 0) found.push(`${held} concurrency slots are held by no call`)
  const sums = await sumsOf(gateway.admin)
  const waiting = sums('diana_waiting')
  if (waiting !== 0) found.push(`${waiting} calls wait whose callers have left`)
  for (const name of ['diana_http_requests_in_progress', 'diana_http_upstream_in_progress']) {
    const counted = sums(name)
    if (counted !== 0) found.push(`${counted} calls are counted by ${name}`)
  }
  return found
}

/** All that is wrong after a round whose callers have all left. */
export async function inspect(gateway, services) {
  if (gateway.hasEnded) return deaths(gateway)
  const settled = startFairTime(gateway)
  let left = await leftovers(gateway, services)
  while (left.length > 0 && settled() < settleMs) {
    await pause(100)
    left = await leftovers(gateway, services)
  }
  const findings = left.map(text => ({ kind: 'left over', text }))
  for (const path of ['/good/fresh', '/fresh?answer=ok']) {
    const call = await callOnce(gateway, path)
    if (call.outcome !== '200') findings.push({ kind: 'failed', text: `a new caller of ${path}: ${call.outcome}` })
    else if (call.fairMs > serveMs)
      findings.push({ kind: 'slow', text: `a new caller of ${path} waited ${Math.round(call.ms)} ms` })
  }
  for (const text of services.hostile.malformed.splice(0)) findings.push({ kind: 'forwarded', text })
  return [...findings, ...deaths(gateway), ...(await internalErrors(gateway))]
}

/** Errors of Diana's own, which are findings also if nothing has ended: the output has only the first ones. */
export async function internalErrors({ hasEnded, admin }) {
  if (hasEnded) return []
  // on a connection of its own: one that is kept would be taken for that of a caller who has left
  const metrics = await new Promise(resolve => {
    const asked = get(`${admin}/metrics`, { agent: false, timeout: 5000 }, answer => resolve(text(answer)))
    asked.on('timeout', () => asked.destroy()).on('error', () => resolve(''))
  })
  const lines = metrics.split('\n').filter(line => line.startsWith('diana_internal_errors_total{'))
  const counted = lines.filter(line => !line.endsWith(' 0'))
  return counted.length > 0 ? [{ kind: 'error', text: `errors of its own: ${counted.join(', ')}` }] : []
}

/** Processes that ended, and errors that the gateway itself calls its own. */
export function deaths(gateway) {
  const findings = []
  if (gateway.hasEnded) findings.push({ kind: 'ended', text: `the gateway ended: ${tailOf(gateway.output)}` })
  else if (gateway.lost.length > 0)
    findings.push({ kind: 'ended', text: `processes ended: ${gateway.lost}: ${tailOf(gateway.output)}` })
  const lines = gateway.output.split('\n')
  const logged = lines.filter(line => /^\{"level":[56]0,/.test(line))
  if (logged.length > 0) {
    findings.push({
      kind: 'error',
      text: `${logged.length} errors in the log, such as ${logged.at(-1).slice(0, 1500)}`,
    })
  }
  // a stack outside of the log: an error that nothing has caught, also if the process went on
  const isStack = line => /^ +at .*:\d+:\d+\)?$/.test(line) || line.includes('nothing has caught')
  if (findings.length === 0 && lines.some(isStack)) {
    findings.push({ kind: 'error', text: `an uncaught error: ${tailOf(gateway.output)}` })
  }
  return findings
}

/** Whether memory is within its bound, now and over the rounds so far. */
export function inspectMemory({ peakBytes, heaps }) {
  const findings = []
  if (peakBytes > mostResidentBytes) findings.push({ kind: 'memory', text: `a process held ${inMb(peakBytes)}` })
  const third = Math.floor(heaps.length / 3)
  if (third >= 3) {
    const [early, late] = [median(heaps.slice(third, 2 * third)), median(heaps.slice(-third))]
    if (late - early > growthBytes)
      findings.push({
        kind: 'memory',
        text: `the heap grew from ${inMb(early)} to ${inMb(late)} over ${heaps.length} rounds`,
      })
  }
  return findings
}

const inMb = bytes => `${Math.round(bytes / 1e6)} MB`
const median = list => [...list].sort((a, b) => a - b)[list.length >> 1]
/** The end of the output that is no line of the log. */
const tailOf = text =>
  text
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('{'))
    .slice(2)
    .join('\n')
    .slice(-1000)

/** Connections at the gateway's port that are open on its side; connections of this process are closed by now. */
export function clientSockets(port) {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map(line => line.trim().split(/\s+/))
    .filter(([, address, , state]) => address?.endsWith(local) && (state === established || state === closeWait)).length
}

async function remainingSlots(admin) {
  const answer = await fetch(`${admin}/api/v1/explain`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ method: 'GET', path: '/explained', headers: {} }),
  })
  const { rules } = await answer.json()
  return rules.find(({ rule }) => rule === 'held').decisions[0].remaining
}

/** Sums of gauges whose names begin so. */
async function sumsOf(admin) {
  const answer = await fetch(`${admin}/metrics`)
  const lines = (await answer.text()).split('\n')
  return name =>
    lines.filter(line => line.startsWith(name)).reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

/** How much of each kind a plan has. */
export function countsOf({ connections }) {
  const sum = read => connections.reduce((total, one) => total + one.times * read(one), 0)
  return {
    connections: sum(() => 1),
    requests: sum(({ requests, steps }) => requests ?? steps.length),
    mutated: sum(({ mutated = 0 }) => mutated),
    aborted: sum(({ aborted = 0 }) => aborted),
    slow: sum(({ slow = 0 }) => slow),
  }
}
