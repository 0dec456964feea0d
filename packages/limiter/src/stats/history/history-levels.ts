/**
 * The steps in which a longer time is kept: two hours, two days and two weeks, so that each range that is shown, an hour, a
 * day and a week, can be compared with the one before it.
 */
export const historyLevels: readonly { readonly stepMs: number; readonly frames: number }[] = [
  { stepMs: 5000, frames: 1440 },
  { stepMs: 300_000, frames: 576 },
  { stepMs: 1_800_000, frames: 672 },
]
