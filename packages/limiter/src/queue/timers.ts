/** Sets the timers of calls that wait. */
export interface Timers {
  set(run: () => void, ms: number): NodeJS.Timeout
  clear(timer: NodeJS.Timeout | undefined): void
  /** Runs in the next turn of the event loop. */
  soon(run: () => void): void
}

/** Those of Node; a replay has its own, which move with the moments of its log. */
export const nodeTimers: Timers = {
  set: (run, ms) => setTimeout(run, ms),
  clear: timer => clearTimeout(timer),
  soon: run => void setImmediate(run),
}
