import type { Call } from '../../call.ts'
import { isThenable } from '../../common/promises.ts'
import { warnOfEach } from '../../common/warn-once.ts'
import type { LimitOfCall } from '../../decision/check-options.ts'
import { inTime } from '../in-time.ts'
import type { GivenLimits } from './given-limits.ts'

/** The values that the functions of one limit have found for a request. */
export interface FoundValues {
  /** The values that callers are counted by, one value for each function of `by`. */
  readonly by: readonly (string | number | undefined)[]
  /** The name of a plan that the options list, if the limit is one. */
  readonly plan: string | undefined
  readonly limit: LimitOfCall | undefined
}

/** A function of the request that may take time. */
export type RequestFunction<Request, Value> = (request: Request, call: Call) => Value | PromiseLike<Value>

type Reported = 'by' | 'limit'

export interface RequestFunctionsOptions<Request> {
  readonly by: readonly RequestFunction<Request, unknown>[]
  readonly limit: RequestFunction<Request, unknown> | undefined
  readonly limits: GivenLimits | undefined
  /** True if a caller that `by` does not know is counted by address. */
  readonly countsUnknown: boolean
  /** The decision on a request for which no limit is found. */
  readonly whenFailed: 'pass' | 'refuse' | undefined
  readonly isShadow: boolean
}

/**
 * The functions of one limit, which are asked before a request is decided. A function that throws, rejects, takes too long or returns
 * what cannot be used has failed: its caller is counted by address, and a request without a limit is refused.
 */
export class RequestFunctions<Request> {
  readonly #options: RequestFunctionsOptions<Request>

  constructor(options: RequestFunctionsOptions<Request>) {
    this.#options = options
  }

  /** True if a request passes after a function has failed that cannot be done without. */
  get passesFailed(): boolean {
    return this.#options.isShadow || this.#options.whenFailed === 'pass'
  }

  /** Asks all functions at once; throws, or rejects, if one has failed that cannot be done without. */
  find(
    request: Request,
    call: Call,
    failed: (error: unknown, name: Reported) => void,
  ): FoundValues | Promise<FoundValues> {
    const { by, limit, limits } = this.#options
    const callers = by.map(read => this.#attempt(() => read(request, call), 'by'))
    const terms = limit === undefined ? undefined : this.#attempt(() => limit(request, call), 'limit')
    const found = (values: readonly unknown[], given: unknown): FoundValues => ({
      by: values.map(value => this.#caller(value, call, failed)),
      ...(limit === undefined ? noLimit : limits!.read(unwrap(given))),
    })
    if (![...callers, terms].some(isThenable)) return found(callers, terms)
    return Promise.all([Promise.all(callers), terms]).then(([values, given]) => found(values, given))
  }

  /** Returns the value, the error or a promise of either. */
  #attempt(read: () => unknown, name: Reported): unknown {
    try {
      const value = read()
      if (!isThenable(value)) return value
      return inTime(value, name).catch(error => new Failure(error))
    } catch (error) {
      return new Failure(error)
    }
  }

  #caller(value: unknown, call: Call, failed: (error: unknown, name: Reported) => void): string | number | undefined {
    if (value instanceof Failure) {
      if (this.#options.whenFailed === 'refuse') throw value.error
      failed(value.error, 'by')
    } else if (typeof value === 'string' || typeof value === 'number') return value
    else if (value === undefined || value === null) return undefined
    else if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
    else warnOfEach('DIANA_BAD_VALUE', 'by')
    // not knowing a caller is no reason to let them pass
    return this.#options.countsUnknown ? undefined : `address ${call.ip}`
  }
}

const noLimit = { plan: undefined, limit: undefined } as const

/** The error of a function. */
class Failure {
  readonly error: unknown

  constructor(error: unknown) {
    this.error = error
  }
}

function unwrap(given: unknown): unknown {
  if (given instanceof Failure) throw given.error
  return given
}
