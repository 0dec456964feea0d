import type { Limit } from '../../algorithms/algorithm.ts'
import type { LimitOfCall } from '../../decision/check-options.ts'
import { DianaError } from '../../errors.ts'
import { isMap } from '../../rules/is-map.ts'
import { parseRate } from '../../rules/limit-text.ts'
import { show } from '../../rules/show.ts'

/** The most different texts that are kept parsed. */
const MOST_KEPT = 1000

type FoundLimit = { readonly plan: string | undefined; readonly limit: LimitOfCall | undefined }

const ofDefault: FoundLimit = { plan: undefined, limit: undefined }

export interface GivenLimitsOptions {
  /** Finds what is wrong with a limit, and with the burst of one. */
  readonly limitFault: (limit: unknown) => string | undefined
  readonly burstFault: (burst: unknown) => string | undefined
  /** The burst that the options state. */
  readonly burst: unknown
  readonly plans: readonly string[]
  readonly hasDefault: boolean
}

/** Reads what a function returns for `limit`: `100/m`, a plan's name, `{ limit, burst }`, or nothing for the default. */
export class GivenLimits {
  readonly #options: GivenLimitsOptions
  readonly #known = new Map<string, FoundLimit>()

  constructor(options: GivenLimitsOptions) {
    this.#options = options
  }

  /** Throws for a value that is no limit. */
  read(value: unknown): FoundLimit {
    if (typeof value === 'string') {
      const known = this.#known.get(value)
      if (known !== undefined) return known
      const read = this.#readText(value)
      // a value that is no plan may be any text: it is not kept
      if (read !== ofDefault && this.#known.size < MOST_KEPT) this.#known.set(value, read)
      return read
    }
    if ((value === undefined || value === null) && this.#options.hasDefault) return ofDefault
    if (!isMap(value)) return this.#found(value, this.#options.burst)
    const { limit, burst = this.#options.burst, ...rest } = value
    const [unknown] = Object.keys(rest)
    if (unknown !== undefined) throw fault(`returned the option ${unknown}: return { limit, burst }, or '100/m'`)
    return this.#found(limit, burst)
  }

  #readText(text: string): FoundLimit {
    if (this.#options.plans.includes(text)) return { plan: text, limit: undefined }
    // a plan that is not listed has the default limit, as one that a dimension names
    const isUnknownPlan = this.#options.plans.length > 0 && this.#options.hasDefault
    if (isUnknownPlan && this.#options.limitFault(text) !== undefined) return ofDefault
    return this.#found(text, this.#options.burst)
  }

  #found(limit: unknown, burst: unknown): FoundLimit {
    const wrong = limit === undefined || limit === null ? absent(limit) : this.#options.limitFault(limit)
    if (wrong !== undefined) throw fault(`returned ${wrong}`)
    const tooBurst = burst === undefined ? undefined : this.#options.burstFault(burst)
    if (tooBurst !== undefined) throw fault(`returned a burst that ${tooBurst}`)
    const terms: Limit = typeof limit === 'number' ? { count: limit, periodMs: 0 } : parseRate(limit as string)!
    const text = burst === undefined ? String(limit) : `${limit} with burst ${burst}`
    return { plan: undefined, limit: { limit: terms, options: burst === undefined ? {} : { burst }, text } }
  }
}

function absent(limit: unknown): string {
  return `${show(limit)}, which is no limit: return '100/m', or let requests pass uncounted with skip: request => …`
}

function fault(what: string): DianaError {
  return new DianaError('BAD_CALL', `rateLimit: limit ${what}`)
}
