import type { Call } from '../call.ts'
import type { Limiter } from '../limiter.ts'
import type { Framework } from './framework.ts'

/** What every filter can be told. `Request` is the framework's own. */
export interface FilterOptions<Request> {
  /** What a call counts as; 1 unless said. */
  readonly cost?: number | ((request: Request) => number) | undefined
  /** What the application knows of the caller: `{ account: session.userId }`. It wins over what `identify` finds. */
  readonly attributes?: ((request: Request) => Call['attributes']) | undefined
  /** What `by: resource` counts: each route where it is known (the default), or each path. */
  readonly resource?: 'route' | 'path' | undefined
  /** Whether `/A` and `/a` are two paths; the framework's own idea unless said. */
  readonly caseSensitive?: boolean | undefined
  /** Told when Diana fails to judge a call, which then passes. */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined
}

/** A limiter mounted in a framework, once. */
export interface Filter<Request, Reply> {
  readonly limiter: Limiter
  readonly framework: Framework<Request, Reply>
  readonly options: FilterOptions<Request>
}
