import { type Figures, type Limiter, type TopCaller, TopCallers } from 'diana-limiter'

/** The processes that judge calls, seen as one: this one, or the workers of a supervisor. */
export interface Processes {
  readonly count: number
  figures(): Figures | Promise<Figures>
  /** How full the fullest key of each rule was since this was last asked. */
  takeLoads(): ReadonlyMap<string, number> | Promise<ReadonlyMap<string, number>>
  /** Who was refused most. */
  callers(count: number, rule?: string): readonly TopCaller[] | Promise<readonly TopCaller[]>
  close(): void
}

/** A limiter of this process; who is refused is remembered from now on. */
export function watchLimiter(limiter: Limiter): Processes {
  const callers = new TopCallers()
  const stop = limiter.observe({ onRefusal: ({ rule, by, key }) => callers.add(rule, by, key, Date.now()) })
  return {
    count: 1,
    figures: () => limiter.figures(),
    takeLoads: () => limiter.takeLoads(),
    callers: (count, rule) => callers.top(count, rule),
    close: stop,
  }
}
