const hour = 3_600_000

/**
 * What the fleet is held to: each rule under a path of its own, how many calls each process offers in a second, and what may pass.
 * Limits are small, so that one call too many shows.
 */
export const subjects = [
  { rule: { id: 'window', limit: '60/s' }, perSecond: 40, bound: { calls: 60, periodMs: 1000 } },
  { rule: { id: 'short', limit: '30/500ms' }, perSecond: 40, bound: { calls: 30, periodMs: 500 } },
  {
    rule: { id: 'bucket', limit: '60/s', algorithm: 'token-bucket', burst: 30 },
    perSecond: 50,
    bound: { burst: 30, perMs: 0.06 },
  },
  // used up before anything breaks
  { rule: { id: 'quota', limit: '24/h' }, perSecond: 15, bound: { calls: 24, periodMs: hour } },
  // used for the first time shortly before something breaks
  { rule: { id: 'fresh', limit: '24/h' }, perSecond: 8, fromMs: -250, bound: { calls: 24, periodMs: hour } },
  { rule: { id: 'levels', limit: ['45/s', '60/m', '90/h'] }, perSecond: 20, bound: { calls: 60, periodMs: 60_000 } },
  { rule: { id: 'slots', algorithm: 'concurrency', limit: 10 }, perSecond: 40, holdMs: 100, bound: { held: 10 } },
  // large enough to be leased
  {
    rule: { id: 'busy', limit: '600/s', algorithm: 'token-bucket', burst: 300 },
    perSecond: 250,
    bound: { burst: 300, perMs: 0.6 },
  },
  { rule: { id: 'callers', by: 'ip', limit: '5/s' }, perSecond: 40, callers: 10, bound: { calls: 5, periodMs: 1000 } },
]

export const rules = subjects.map(({ rule }) => ({ ...rule, match: { path: `/${rule.id}` } }))

/** What the checker of traces needs to know of each rule; a rule of several levels is left to the sums. */
export const traceLimits = Object.fromEntries(
  subjects.flatMap(({ rule, bound }) => {
    if (bound.held !== undefined || Array.isArray(rule.limit)) return []
    const { calls = bound.burst, perMs, periodMs = hour } = bound
    return [[rule.id, { calls, perMs, ends: periodMs < hour }]]
  }),
)

/** A pace that the processes share, for faults that ask for it; its permits are reported after the calls of all rules. */
export const pace = { perSecond: 60, maxBurst: '100ms' }
