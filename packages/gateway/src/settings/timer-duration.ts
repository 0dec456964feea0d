import type { z } from 'diana-limiter/schema'
import { duration } from 'diana-limiter/schema'

/** Node takes a timer that is longer for one that is over at once. */
const longestTimerMs = 2 ** 31 - 1
const dayMs = 86_400_000

/** A duration for which a timer is set; longer ones are as good as none. */
export const timerDuration: z.Schema<number, string> = duration.transform(ms => Math.min(ms, longestTimerMs))

/** The time between two things that are done again and again. */
export const intervalDuration: z.Schema<number, string> = duration.refine(ms => ms <= dayMs, {
  error: 'must be at most 1d',
})
