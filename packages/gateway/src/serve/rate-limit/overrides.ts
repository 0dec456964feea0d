import type { Call, Limiter } from 'diana-limiter'
import type { Descriptor, LimitOverride } from './rate-limit-request.ts'

const unitNames: readonly (string | undefined)[] = [undefined, 's', 'm', 'h', 'd', '30d', '365d', '7d']
const mostOverrides = 256
/** The highest count of a sliding window; a higher number is meant as no limit. */
const mostRequests = 2 ** 26 - 1

/**
 * Rules for limits that descriptors bring along. There is one for each limit, which counts every descriptor apart, and it is added
 * when the first descriptor brings it. There are not more than 256: descriptors with further limits are decided by the rule file.
 */
export class Overrides {
  readonly #limiter: Limiter
  readonly #isShared: boolean
  readonly #ids = new Map<string, string>()

  constructor(limiter: Limiter, isShared: boolean) {
    this.#limiter = limiter
    this.#isShared = isShared
  }

  /** Returns the id of the rule for a limit; undefined if it is no limit, or one too many. */
  ruleFor({ requests: given, unit }: LimitOverride): string | undefined {
    const period = unitNames[unit]
    const requests = Math.min(given, mostRequests)
    if (period === undefined) return undefined
    const limit = `${requests}/${period}`
    const known = this.#ids.get(limit)
    if (known !== undefined || this.#ids.size >= mostOverrides) return known
    const id = `override-${requests}-${period}`
    this.#limiter.addRule({
      ...{ id, match: 'none', limit, algorithm: 'sliding-window' },
      by: ['attribute:domain', 'attribute:entries'],
      ...(this.#isShared && { count: 'distributed' as const }),
    })
    this.#ids.set(limit, id)
    return id
  }
}

/** Makes the call of a descriptor with a limit of its own, which is counted by everything in it. */
export function overrideCall(domain: string, { entries }: Descriptor): Call {
  return { method: 'POST', path: '/', attributes: { domain, entries: JSON.stringify(entries) } }
}
