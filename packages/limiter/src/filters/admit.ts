import { valueNow } from '../common/sync-function.ts'
import { warnOnce } from '../common/warn-once.ts'
import type { Verdict } from '../verdict.ts'
import type { Filter } from './filter.ts'
import { report } from './report.ts'
import { FilterRun } from './visit.ts'

/** What became of a request, as later filters and the application ask it. */
type PastVisit = Pick<FilterRun<never, never>, 'filter' | 'verdict' | 'charged'>

interface Visited {
  [visits]?: readonly PastVisit[] | PastVisit
}

const visits: unique symbol = Symbol('diana.visits')

/**
 * Judges a request that has come to a filter; true when it goes on. One that a filter of the same limiter and rules has
 * judged before goes on as it is.
 */
export function admit<Request, Reply>(
  filter: Filter<Request, Reply>,
  request: Request,
  reply: Reply,
): boolean | Promise<boolean> {
  const { framework, options } = filter
  if (options.skip !== undefined && isSkipped(filter, options.skip, request)) return true
  const visited = placeFor(framework.identity(request))
  const past = visited[visits]
  const covering = past === undefined ? undefined : pastOf(past).find(one => coversAll(one.filter, filter))
  if (covering !== undefined) {
    // a filter around another framework's is meant so: it sees what the inner one does not
    if (covering.filter.framework === (framework as unknown)) warnOnce('DIANA_MOUNTED_TWICE')
    return true
  }
  if (framework.isAnswered(reply)) {
    warnOnce('DIANA_MOUNTED_LATE')
    return true
  }
  // what matches is counted once, whoever counts it
  const only = filter.only || (past !== undefined && pastOf(past).some(one => coversMatching(one.filter, filter)))
  const visit = new FilterRun(filter, request, reply, only)
  if (past === undefined) visited[visits] = visit
  else {
    const all = pastOf(past)
    visit.follow(all.findLast(one => one.verdict !== undefined)?.verdict, chargedBy(filter, all))
    visited[visits] = [...all, visit]
  }
  return visit.judge()
}

/** If the application's function fails, the request is judged: a caller must not be able to make it fail and pass. */
function isSkipped<Request>(
  { framework, options }: Filter<Request, never>,
  skip: (request: Request) => boolean,
  request: Request,
): boolean {
  try {
    return valueNow(skip(request), 'skip') === true
  } catch (error) {
    report(error, request, options, framework)
    return false
  }
}

/** What Diana said of a request of any framework, by the rules of all filters that it has passed. */
export function verdictOf(request: object): Verdict | undefined {
  const past = placeFor(request)[visits]
  return past === undefined ? undefined : pastOf(past).at(-1)?.verdict
}

/**
 * Where visits are kept: with the raw headers, a list that each of Node's requests has to itself. Those of Express have each
 * a hidden class of their own, and one property more on them would cost as much as all the rest that a filter does.
 */
function placeFor(identity: { readonly rawHeaders?: object }): Visited {
  return identity.rawHeaders ?? identity
}

function pastOf(past: readonly PastVisit[] | PastVisit): readonly PastVisit[] {
  return Array.isArray(past) ? past : [past as PastVisit]
}

/** The rules by which filters of the same limiter have charged the request; undefined if no such filter has seen it. */
function chargedBy({ limiter }: Filter<never, never>, past: readonly PastVisit[]): string[] | undefined {
  const same = past.filter(one => one.filter.limiter === limiter)
  return same.length === 0 ? undefined : same.flatMap(one => one.charged)
}

function coversMatching(past: Filter<never, never>, { limiter }: Filter<never, never>): boolean {
  return past.limiter === limiter && !past.only
}

/** Whether nothing is left to judge after a filter that the request has passed. */
function coversAll(past: Filter<never, never>, filter: Filter<never, never>): boolean {
  if (past.limiter !== filter.limiter || (past.only && !filter.only)) return false
  return filter.rules.every(rule => past.rules.includes(rule))
}
