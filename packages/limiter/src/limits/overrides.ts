import type { SendCommand } from '../stores/redis/send-command.ts'

/** The limit that an operator has given one caller of a rule. */
export interface Override {
  readonly rule: string
  /** The key under which the rule counts the caller. */
  readonly key: string
  /** Such as `5000/h`. */
  readonly limit: string
  /** Milliseconds since 1970; undefined if it has no end. */
  readonly until?: number | undefined
  /** The time when it was set; the operator who has set it and the reason follow. */
  readonly setAt: number
  readonly setBy?: string | undefined
  readonly reason?: string | undefined
}

/** The place where overrides live. */
export interface OverrideStore {
  get(rule: string, key: string): Promise<Override | undefined>
  set(override: Override): Promise<void>
  /** Returns whether there was one. */
  remove(rule: string, key: string): Promise<boolean>
  /** Lists at most `most` of those that have not ended. */
  list(most: number, nowMs: number): Promise<Override[]>
  /** Returns the callers whose override has changed since the last time. */
  changes(): Promise<readonly (readonly [rule: string, key: string])[]>
}

/** In this process, for a limiter without Redis: they end with it. */
export class MemoryOverrides implements OverrideStore {
  readonly #overrides = new Map<string, Override>()
  #changed: (readonly [string, string])[] = []

  async get(rule: string, key: string): Promise<Override | undefined> {
    return this.#overrides.get(fieldOf(rule, key))
  }

  async set(override: Override): Promise<void> {
    this.#overrides.set(fieldOf(override.rule, override.key), override)
    this.#changed.push([override.rule, override.key])
  }

  async remove(rule: string, key: string): Promise<boolean> {
    this.#changed.push([rule, key])
    return this.#overrides.delete(fieldOf(rule, key))
  }

  async list(most: number, nowMs: number): Promise<Override[]> {
    return [...this.#overrides.values()].filter(one => isInForce(one, nowMs)).slice(0, most)
  }

  async changes(): Promise<readonly (readonly [string, string])[]> {
    return this.#changed.splice(0)
  }
}

/** The time for which changes are remembered: a process that hears nothing for longer asks for each override again anyway. */
const CHANGES_KEPT_MS = 600_000

/**
 * In Redis, for all processes: a hash of overrides, and a sorted set of what has changed, by the time of Redis. Both have one
 * slot of a Cluster.
 */
export class RedisOverrides implements OverrideStore {
  readonly #send: SendCommand
  readonly #hash: string
  readonly #changes: string
  #seenMs = 0

  constructor(send: SendCommand, prefix: string) {
    this.#send = send
    this.#hash = `${prefix}:{overrides}`
    this.#changes = `${prefix}:{overrides}:changes`
  }

  async get(rule: string, key: string): Promise<Override | undefined> {
    return read(await this.#send(['HGET', this.#hash, fieldOf(rule, key)]), rule, key)
  }

  async set(override: Override): Promise<void> {
    const field = fieldOf(override.rule, override.key)
    await this.#send(['HSET', this.#hash, field, JSON.stringify(override)])
    await this.#announce(field)
  }

  async remove(rule: string, key: string): Promise<boolean> {
    const field = fieldOf(rule, key)
    const removed = Number(await this.#send(['HDEL', this.#hash, field])) > 0
    if (removed) await this.#announce(field)
    return removed
  }

  async list(most: number, nowMs: number): Promise<Override[]> {
    const found: Override[] = []
    for (let cursor = '0', isFirst = true; isFirst || (cursor !== '0' && found.length < most); isFirst = false) {
      const [next, pairs] = (await this.#send(['HSCAN', this.#hash, cursor, 'COUNT', '500'])) as [unknown, unknown[]]
      for (let i = 0; i + 1 < pairs.length && found.length < most; i += 2) {
        const named = namesIn(String(pairs[i]))
        const override = named && read(pairs[i + 1], ...named)
        if (override && isInForce(override, nowMs)) found.push(override)
      }
      cursor = String(next)
    }
    return found
  }

  async changes(): Promise<readonly (readonly [string, string])[]> {
    const from = this.#seenMs
    // of changes in the same millisecond, one may come after the question
    this.#seenMs = (await this.#clock()) - 1
    const fields = (await this.#send(['ZRANGEBYSCORE', this.#changes, String(from), '+inf'])) as unknown[]
    return fields.map(field => namesIn(String(field))).filter(names => names !== undefined)
  }

  async #announce(field: string): Promise<void> {
    const now = await this.#clock()
    await this.#send(['ZADD', this.#changes, String(now), field])
    await this.#send(['ZREMRANGEBYSCORE', this.#changes, '-inf', String(now - CHANGES_KEPT_MS)])
  }

  async #clock(): Promise<number> {
    const [seconds, us] = (await this.#send(['TIME'])) as [unknown, unknown]
    return Number(seconds) * 1000 + Math.floor(Number(us) / 1000)
  }
}

function isInForce({ until = Number.POSITIVE_INFINITY }: Override, nowMs: number): boolean {
  return until > nowMs
}

function fieldOf(rule: string, key: string): string {
  return JSON.stringify([rule, key])
}

function namesIn(field: string): readonly [rule: string, key: string] | undefined {
  try {
    const names: unknown = JSON.parse(field)
    return Array.isArray(names) && names.length === 2 ? [String(names[0]), String(names[1])] : undefined
  } catch {
    return undefined
  }
}

/** Reads an override; what other programs have written there is none. */
function read(text: unknown, rule: string, key: string): Override | undefined {
  if (typeof text !== 'string') return undefined
  try {
    const { limit, until, setAt, setBy, reason } = JSON.parse(text) as Partial<Override>
    if (typeof limit !== 'string') return undefined
    return {
      ...{ rule, key, limit, setAt: Number(setAt) || 0 },
      ...(typeof until === 'number' ? { until } : {}),
      ...(typeof setBy === 'string' ? { setBy } : {}),
      ...(typeof reason === 'string' ? { reason } : {}),
    }
  } catch {
    return undefined
  }
}
