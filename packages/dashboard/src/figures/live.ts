import { type Signal, signal } from '@preact/signals'
import { api, ask } from '../api/api.ts'
import type { LiveFigures, Rule, RuleCosts, Session, Status } from '../api/generated.ts'
import { Problem } from '../api/problem.ts'
import { readServerEvents, type ServerEvent } from '../api/server-events.ts'
import { refusal, session, tokenIsAsked } from '../api/session.ts'
import { OverloadFigures } from './overload-figures.ts'
import { Ring, SECONDS } from './ring.ts'
import { StoreCalls } from './store-calls.ts'

export type Connection = 'connecting' | 'live' | 'lost'

/** Figures come every second: a stream that is silent for longer hangs. */
const SILENCE_MS = 5000
/** Rules and history may be long and the line slow: only a gateway that sends nothing at all for this long is silent. */
const LOADING_MS = 60_000
/** The time for which the last load of a rule is shown, so that it stays between rare calls. */
const LOAD_SECONDS = 60
/** A stream that lasted for less has failed. */
const STEADY_MS = 5000
const RETRY_MS = [250, 500, 1000, 2000]

export const connection: Signal<Connection> = signal('connecting')
/** The second, since 1970, of the newest figures; everything that is drawn follows it. */
export const second: Signal<number> = signal(0)
export const status: Signal<Status | undefined> = signal(undefined)
/** The paths of the admin API that this gateway knows; undefined until they were read. */
export const paths: Signal<ReadonlySet<string> | undefined> = signal(undefined)
export const rules: Signal<readonly Rule[] | undefined> = signal(undefined)

export const total: Ring = new Ring()
export const storeCalls: StoreCalls = new StoreCalls()
export const overloadFigures: OverloadFigures = new OverloadFigures()
const rings = new Map<string, Ring>()
const loads = new Map<string, { readonly at: number; readonly load: number }>()
let newest: LiveFigures | undefined

export function ringOf(rule: string): Ring | undefined {
  return rings.get(rule)
}

/** Returns the share of the limit that the busiest key had in use at the last call of the rule, for as long as that means something. */
export function loadOf(rule: string): number | undefined {
  const known = loads.get(rule)
  return known !== undefined && second.value - known.at < LOAD_SECONDS ? known.load : undefined
}

/** Returns the rules with permits held in advance, those with most first. */
export function leasedRules(): readonly (readonly [rule: string, permits: number])[] {
  const held = Object.entries(newest?.rules ?? {}).map(([id, { leased = 0 }]) => [id, leased] as const)
  return held.filter(([, permits]) => permits > 0).sort((a, b) => b[1] - a[1])
}

/** Returns the costs that rules have reserved and settled, by rule. */
export function costsByRule(): readonly (readonly [rule: string, costs: RuleCosts])[] {
  return Object.entries(newest?.costs ?? {}).sort(([one], [other]) => (one < other ? -1 : 1))
}

/** Calls that wait at this moment, for a rule or for all. */
export function waitingFor(rule?: string): number {
  const counts = rule === undefined ? newest?.total : newest?.rules[rule]
  return counts?.waiting ?? 0
}

/** Follows the gateway for as long as the page is open, through restarts of the gateway and silences of the network. */
export async function followGateway(signal: AbortSignal): Promise<void> {
  let attempt = 0
  while (!signal.aborted) {
    const startedAt = performance.now()
    try {
      await followOnce(signal, () => {
        attempt = 0
      })
      // a stream ends normally when the sign-in of its reader expires: the next stream signs in again
      if (performance.now() - startedAt > STEADY_MS) continue
    } catch (error) {
      if (error instanceof Problem && isKeptOut(error)) {
        refusal.value = error.status === 401 ? undefined : error.message
        await untilTokenIsGiven()
        continue
      }
    }
    if (signal.aborted) return
    connection.value = 'lost'
    await pause(RETRY_MS[Math.min(attempt++, RETRY_MS.length - 1)]!)
  }
}

/** Returns true if the gateway answers and refuses this tab. */
function isKeptOut({ status, body }: Problem): boolean {
  return status === 401 || ((status === 400 || status === 403) && typeof body.detail === 'string')
}

async function followOnce(outer: AbortSignal, onLive: () => void): Promise<void> {
  const inner = new AbortController()
  const signal = AbortSignal.any([outer, inner.signal])
  let silence = setTimeout(() => inner.abort(), LOADING_MS)
  try {
    const response = await ask('live', { signal, headers: { accept: 'text/event-stream' } })
    await readEverything(signal)
    clearTimeout(silence)
    silence = setTimeout(() => inner.abort(), SILENCE_MS)
    for await (const event of readServerEvents(response.body!)) {
      clearTimeout(silence)
      silence = setTimeout(() => inner.abort(), SILENCE_MS)
      connection.value = 'live'
      onLive()
      await take(event, signal)
    }
  } finally {
    clearTimeout(silence)
    inner.abort()
  }
}

async function readEverything(signal: AbortSignal): Promise<void> {
  // a gateway that knows no roles lets everybody change everything
  session.value = await api.session(signal).catch((): Session => ({ role: 'operator', via: 'open' }))
  const [history, told, state, known] = await Promise.all([
    api.figures(SECONDS, signal),
    api.rules(signal),
    api.status(signal),
    api.paths(signal),
  ])
  paths.value = known
  const last = Math.floor(history.at / 1000)
  total.fill(last, history.total)
  for (const [id, series] of Object.entries(history.rules)) ringFor(id).fill(last, series)
  for (const [id, load] of Object.entries(history.loads)) loads.set(id, { at: last, load })
  overloadFigures.fill(last, history)
  rules.value = told
  status.value = state
  second.value = Math.max(second.value, last)
}

async function take({ name, data }: ServerEvent, signal: AbortSignal): Promise<void> {
  if (name === 'figures') takeFigures(JSON.parse(data) as LiveFigures)
  if (name === 'status') status.value = JSON.parse(data) as Status
  if (name === 'rules') {
    rules.value = await api.rules(signal)
    forgetRules()
  }
}

function takeFigures(figures: LiveFigures): void {
  const at = Math.floor(figures.at / 1000)
  newest = figures
  total.write(at, figures.total)
  storeCalls.write(at, figures.store)
  overloadFigures.add(at, figures)
  for (const [id, counts] of Object.entries(figures.rules)) {
    ringFor(id).write(at, counts)
    if (counts.load !== undefined) loads.set(id, { at, load: counts.load })
  }
  second.value = Math.max(second.value, at)
}

/** Rules that are gone must not stay in memory for as long as a page is open. */
function forgetRules(): void {
  const known = new Set(rules.value?.map(({ id }) => id))
  for (const id of rings.keys()) if (!known.has(id.replace(/~trial$/, ''))) rings.delete(id)
  for (const id of loads.keys()) if (!known.has(id.replace(/~trial$/, ''))) loads.delete(id)
}

function ringFor(rule: string): Ring {
  let ring = rings.get(rule)
  if (ring === undefined) {
    ring = new Ring()
    rings.set(rule, ring)
  }
  return ring
}

function untilTokenIsGiven(): Promise<void> {
  connection.value = 'connecting'
  tokenIsAsked.value = true
  return new Promise(resolve => {
    const stop = tokenIsAsked.subscribe(isAsked => {
      if (isAsked) return
      queueMicrotask(() => stop())
      resolve()
    })
  })
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
