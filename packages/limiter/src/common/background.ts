import { reportFault } from './faults.ts'

/**
 * Work in the background: timers, sweeps and queues. No caller waits for it, so no caller would see an error, and one bad member would
 * stop the work for all others. Everything that runs again and again runs through these functions.
 */

/** Something that is done again and again until it is stopped. */
export interface Repeated {
  stop(): void
}

/** Does work at an interval, without keeping the process alive. An error is reported, and the next turn comes nevertheless. */
export function repeat(place: string, everyMs: number, work: () => unknown): Repeated {
  const timer = setInterval(() => attempt(place, work), everyMs)
  // a timer of the web platform is a number
  timer.unref?.()
  return { stop: () => clearInterval(timer) }
}

/** Does work once, and reports its error, also that of a promise. Returns whether it was done, as far as is known by then. */
export function attempt(place: string, work: () => unknown): boolean {
  try {
    const result = work()
    if (result instanceof Promise) result.catch(error => reportFault(place, error))
    return true
  } catch (error) {
    reportFault(place, error)
    return false
  }
}

/** Visits all members. One that throws is dropped and reported, and the others are visited nevertheless. */
export function visitAll<Member>(
  place: string,
  members: Iterable<Member>,
  visit: (member: Member) => unknown,
  drop: (member: Member) => unknown,
): void {
  for (const member of members) if (!attempt(place, () => visit(member))) attempt(place, () => drop(member))
}
