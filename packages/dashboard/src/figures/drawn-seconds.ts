import { status, total } from './live.ts'
import { SECONDS } from './ring.ts'

/** Seconds that are drawn at least. */
const SHORTEST = 60

/** Returns the seconds that charts of the live stream show. */
export function drawnSeconds(now: number): number[] {
  const length = Math.min(SECONDS, now - beginningOf(now) + 1)
  return Array.from({ length }, (_, index) => now - length + 1 + index)
}

/** Returns the first second of the drawing: a gateway that has just started shows a short range, which grows, rather than empty minutes. */
function beginningOf(now: number): number {
  const known = total.window(now, SECONDS, 'allowed').findIndex((passed, index) => {
    return passed > 0 || total.at(now - SECONDS + 1 + index, 'refused') > 0
  })
  const first = known < 0 ? now : now - SECONDS + 1 + known
  const started = Math.ceil((status.peek()?.startedAt ?? 0) / 1000)
  return Math.min(first, started, now - SHORTEST + 1)
}
