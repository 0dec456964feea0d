import type { Call } from 'diana-limiter'
import { httpFramework } from 'diana-limiter/filter'
import type { ReplayLimiter } from 'diana-limiter/gateway'
import { settledTarget } from '../../http/normalize-request.ts'
import type { LogEntry } from '../formats/format.ts'
import { copyOf } from '../reading/copy-text.ts'

interface Target {
  readonly path: string
  readonly query: string | undefined
}

const MOST_KNOWN = 20_000

/** Makes calls of the lines of logs, as the gateway makes them of requests. */
export class EntryCalls {
  readonly #addressOf: ReplayLimiter['addressOf']
  readonly #forwardedBy: string
  readonly #userAs: string | undefined
  /** True if the address in a log may already be that of the caller. */
  readonly #isCaller: boolean
  readonly #targets = new Map<string, Target | undefined>()
  readonly #addresses = new Map<string, string | undefined>()

  constructor(replay: ReplayLimiter, options: { forwardedBy: string; isCaller: boolean; userAs?: string | undefined }) {
    this.#addressOf = replay.addressOf
    this.#forwardedBy = options.forwardedBy
    this.#isCaller = options.isCaller
    this.#userAs = options.userAs
  }

  /** Returns the call of an entry; undefined for a request that the gateway answers before any rule is asked. */
  callOf(entry: LogEntry): Call | undefined {
    const target = this.#targetOf(entry.target)
    if (target === undefined) return undefined
    const { headers, host, attributes, user } = entry
    return {
      method: entry.method,
      path: target.path,
      query: target.query,
      caseInsensitive: true,
      ip: this.#addressOfEntry(entry),
      host: host ?? headers?.host,
      headers,
      attributes:
        this.#userAs !== undefined && user !== undefined ? { ...attributes, [this.#userAs]: user } : attributes,
    }
  }

  #targetOf(raw: string): Target | undefined {
    const known = this.#targets.get(raw)
    if (known !== undefined || this.#targets.has(raw)) return known
    const url = settledTarget(raw)
    const target = url === undefined ? undefined : targetOf(url)
    if (this.#targets.size >= MOST_KNOWN) this.#targets.clear()
    this.#targets.set(copyOf(raw), target)
    return target
  }

  #addressOfEntry({ peer, headers }: LogEntry): string | undefined {
    if (peer === undefined) return undefined
    const forwarded = this.#isCaller ? undefined : headers?.[this.#forwardedBy]
    if (forwarded !== undefined) return this.#addressOf(peer, forwarded)
    const known = this.#addresses.get(peer)
    if (known !== undefined) return known
    const address = this.#isCaller ? copyOf(peer) : this.#addressOf(copyOf(peer), undefined)
    if (this.#addresses.size >= MOST_KNOWN) this.#addresses.clear()
    this.#addresses.set(copyOf(peer), address)
    return address
  }
}

function targetOf(url: string): Target {
  const question = url.indexOf('?')
  const query = question < 0 ? undefined : copyOf(url.slice(question + 1))
  return { path: copyOf(httpFramework.path({ url, headers: {} } as never)), query }
}
