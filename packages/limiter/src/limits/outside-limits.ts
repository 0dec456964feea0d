import { setMaxListeners } from 'node:events'
import type { Call } from '../call.ts'
import { type Repeated, repeat, visitAll } from '../common/background.ts'
import { warnOnce } from '../common/warn-once.ts'
import { type LimitedCall, type LimitOfCall, limitOfCall } from '../decision/check-options.ts'
import type { CallerLimits, RuleState, RuleWithLimits } from '../decision/rule-state.ts'
import { describePart } from '../dimensions/key.ts'
import { fetchText } from '../sources/client/fetch-text.ts'
import type { SendCommand } from '../stores/redis/send-command.ts'
import { LimitCache, type LimitEntry, LONGEST_TEXT, TIMEOUT_MS } from './limit-cache.ts'
import { MemoryOverrides, type OverrideStore, RedisOverrides } from './overrides.ts'

/** The time after which a change of an override is seen by other processes. */
const FOLLOW_MS = 300
/** An override is asked for again after this, in case a change was missed. */
const OVERRIDE_REFRESH_MS = 60_000
/** The time between readings of the moment by which limits end and are asked for again. */
const TICK_MS = 100

export interface OutsideLimitsOptions {
  readonly send?: SendCommand | undefined
  readonly prefix?: string | undefined
  readonly nowMs: () => number
  readonly functionOf?:
    | ((name: string) => ((caller: Readonly<Record<string, string>>) => unknown) | undefined)
    | undefined
}

type FromOutside = NonNullable<RuleWithLimits['standard']['rule']['plans']>['from']

interface Cached {
  readonly cache: LimitCache
  readonly label: string
}

/** The limits of single callers that do not come from the rules: overrides of operators, and sources that rules name. */
export class OutsideLimits {
  readonly overrides: OverrideStore
  readonly #options: OutsideLimitsOptions
  readonly #caches = new Map<string, Cached[]>()
  readonly #abort = new AbortController()
  #nowMs: number
  #ticking: Repeated | undefined
  #following: Repeated | undefined

  constructor(options: OutsideLimitsOptions) {
    this.#options = options
    const { send, prefix = 'diana' } = options
    this.overrides = send ? new RedisOverrides(send, prefix) : new MemoryOverrides()
    this.#nowMs = options.nowMs()
    // each open question listens to it; Node would report more than ten as a leak
    setMaxListeners(0, this.#abort.signal)
  }

  close(): void {
    this.#ticking?.stop()
    this.#following?.stop()
    this.#abort.abort()
  }

  /** Returns the limits of the callers of a rule; undefined if the rule has none from outside. */
  limitsOf(binding: RuleWithLimits): CallerLimits | undefined {
    const { rule } = binding.standard
    const { from, overrides } = rule.plans!
    if (from === undefined && !overrides) return undefined
    const isOfCall = from !== undefined && this.#options.functionOf?.(from.address) === limitOfCall
    const ofCall = isOfCall ? limitsOfCalls(binding) : undefined
    if (ofCall !== undefined && !overrides) return { stateFor: (_key, call) => ofCall(call) }
    this.#start(overrides)
    const caches = this.#cachesOf(binding, isOfCall ? undefined : from)
    return {
      stateFor: (key, call) => {
        for (let i = 0; i < caches.length; i++) {
          const state = this.#stateIn(caches[i]!, binding, key, call)
          if (state !== undefined) return state
        }
        return ofCall?.(call)
      },
    }
  }

  #stateIn({ cache, label }: Cached, binding: RuleWithLimits, key: string, call: Call): RuleState | undefined {
    const nowMs = this.#nowMs
    const entry = cache.find(key)
    if (cache.isDue(entry, nowMs)) cache.ask(key, callerOf(binding.standard, call, key), nowMs)
    if (entry?.known === undefined || entry.known.untilMs <= nowMs) return undefined
    if (entry.usedBy !== binding) {
      entry.usedBy = binding
      entry.state = this.#stateOf(binding, entry, label)
    }
    return entry.state as RuleState | undefined
  }

  /** Asks again for what has changed. */
  async follow(): Promise<void> {
    const refresh = ([rule, key]: readonly [rule: string, key: string]): void =>
      this.#caches.get(`${rule} overrides`)?.[0]?.cache.refresh(key)
    visitAll('limits of operators', await this.overrides.changes(), refresh, () => {})
  }

  #stateOf(binding: RuleWithLimits, { known }: LimitEntry, label: string): RuleState | undefined {
    const { rule } = binding.standard
    const until = Number.isFinite(known!.untilMs) ? ` until ${new Date(known!.untilMs).toISOString()}` : ''
    try {
      const state = binding.dynamic(rule.plans!.withLimit(known!.limit, `${label}${until}`))
      if (state === undefined) warnOnce('DIANA_LIMIT_UNUSABLE', `rule "${rule.id}": too many different limits`, rule.id)
      return state
    } catch (error) {
      const trouble = error instanceof Error ? error.message : String(error)
      warnOnce('DIANA_LIMIT_UNUSABLE', `rule "${rule.id}": a limit ${trouble}`, rule.id)
      return undefined
    }
  }

  /** Caches are kept when rules change, as long as they ask the same. */
  #cachesOf({ standard: { rule } }: RuleWithLimits, from: FromOutside): readonly Cached[] {
    const { overrides } = rule.plans!
    const found: Cached[] = []
    const add = (
      name: string,
      label: string,
      ask: ConstructorParameters<typeof LimitCache>[0]['ask'],
      refreshMs: number,
    ) => {
      const [known] = this.#caches.get(name) ?? []
      const onTrouble = (trouble: string) =>
        warnOnce('DIANA_LIMITS_AWAY', `rule "${rule.id}": ${label} ${trouble}`, name)
      const cached = known ?? {
        cache: new LimitCache({ ask, refreshMs, onTrouble }),
        label,
      }
      this.#caches.set(name, [cached])
      found.push(cached)
    }
    if (overrides)
      add(`${rule.id} overrides`, 'override', caller => this.#override(rule.id, caller), OVERRIDE_REFRESH_MS)
    if (from !== undefined) {
      const name = `${rule.id} ${from.address} ${from.refreshMs}`
      const label = from.address.startsWith('function:') ? 'function' : (from.address.split(':', 1)[0] ?? 'source')
      add(name, label, caller => this.#source(from.address, caller), from.refreshMs)
    }
    return found
  }

  async #override(rule: string, caller: Readonly<Record<string, string>>): Promise<unknown> {
    return await this.overrides.get(rule, caller[KEY]!)
  }

  async #source(address: string, caller: Readonly<Record<string, string>>): Promise<unknown> {
    const { [KEY]: _, ...values } = caller
    if (address.startsWith('function:')) return await this.#options.functionOf?.(address)?.(values)
    const isRedis = address.startsWith('redis:')
    if (isRedis) {
      if (!this.#options.send) throw new Error('needs store: { redis: … }')
      return await this.#options.send(['GET', fill(address, name => values[name]!).slice('redis:'.length)])
    }
    const url = urlOf(address, values)
    if (url === undefined) return undefined
    const bounds = { timeoutMs: TIMEOUT_MS, mostBytes: LONGEST_TEXT }
    const { status, text } = await fetchText(url, this.#abort.signal, bounds)
    if (status === 404 || status === 204) return undefined
    if (status !== 200) throw new Error(`answered HTTP ${status}`)
    return text
  }

  #start(follows: boolean): void {
    this.#ticking ??= repeat('the clock of limits', TICK_MS, () => {
      this.#nowMs = this.#options.nowMs()
    })
    if (follows) this.#following ??= repeat('limits of operators', FOLLOW_MS, () => void this.follow().catch(() => {}))
  }
}

/** The most limits that are kept compiled for a rule; any other is compiled with each call that has it. */
const MOST_COMPILED = 1000

/** Finds the state of a call by the limit that the call has; undefined if it has none, or there are too many different ones. */
function limitsOfCalls(binding: RuleWithLimits): (call: LimitedCall) => RuleState | undefined {
  const { rule } = binding.standard
  const known = new Map<string, typeof rule>()
  const compiled = ({ text, limit, options }: LimitOfCall): typeof rule => {
    const before = known.get(text)
    if (before !== undefined) return before
    const limited = rule.plans!.withLimit(limit, 'function', options)
    if (known.size >= MOST_COMPILED) known.clear()
    known.set(text, limited)
    return limited
  }
  const unusable = (text: string, why: string): undefined => {
    warnOnce('DIANA_LIMIT_UNUSABLE', `rule "${rule.id}": ${text} ${why}`, rule.id)
  }
  return call => {
    const own = call.ownLimit
    if (own === undefined) return undefined
    try {
      return binding.dynamic(compiled(own)) ?? unusable(own.text, 'is one of too many different limits')
    } catch (error) {
      // a decision must not be interrupted
      return unusable(own.text, error instanceof Error ? error.message : String(error))
    }
  }
}

function fill(address: string, read: (name: string) => string): string {
  return address.replaceAll(/\{([^{}]+)\}/g, (_, name: string) => read(name))
}

/** Returns the URL of a caller; undefined for one whose value would lead to another place, such as `..`, or is no text. */
function urlOf(address: string, values: Readonly<Record<string, string>>): URL | undefined {
  // half a surrogate pair has no bytes in UTF-8: that is no trouble of the server
  if (Object.values(values).some(value => /\p{Cs}/u.test(value))) return undefined
  const filled = fill(address, name => encodeURIComponent(values[name]!))
  const [path = ''] = filled.split(/[?#]/, 1)
  return path.split('/').some(part => /^(\.|%2e){1,2}$/i.test(part)) ? undefined : new URL(filled)
}

/** The name of the key of a caller among their values; no dimension has an empty name. */
const KEY = ''

/** Returns the values of a caller's dimensions; undefined if one of them is missing, or only known by a digest. */
function callerOf({ rule }: RuleState, call: Call, key: string): Readonly<Record<string, string>> | undefined {
  const caller: Record<string, string> = { [KEY]: key }
  for (const [name, read] of rule.keyParts) {
    const { countedBy, value } = describePart(read(call))
    if (countedBy !== 'value') return undefined
    caller[name] = value
  }
  return caller
}
