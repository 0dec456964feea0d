/** Within how many milliseconds a fleet of so many processes has to be back; above, in proportion. */
const marks = [
  [3, 1000],
  [100, 2000],
  [300, 3000],
]
/** Of each second, what a recovery may take of the thread of Redis. */
export const MOST_BUSY_MS = 500

export function markOf(processes) {
  const mark = marks.find(([most]) => processes <= most)
  return mark ? mark[1] : 3000 + (processes - 300) * 5
}
