import type { QueuedWaiter } from './callers-in-queue.ts'
import type { RuleState } from './rule-state.ts'

/**
 * True if one more call of a caller may wait. If all places are taken, it may if another caller has at least two calls more in the
 * queue, of which the newest then leaves: one caller alone may use the whole queue, and does not keep others out of it.
 */
export function hasRoom({ rule, waiting, callers }: RuleState, key: string): boolean {
  if (waiting === 0 || rule.by.length === 0) return waiting < rule.queueSize
  const own = callers.countOf(key)
  if (rule.queuePerCaller !== undefined && own >= rule.queuePerCaller) return false
  return waiting < rule.queueSize || (rule.queueSize > 0 && callers.most > own + 1)
}

/** A call begins to wait for a rule. */
export function enterQueue(state: RuleState, key: string, call: QueuedWaiter): void {
  const { rule, callers } = state
  state.waiting++
  if (rule.by.length === 0) return
  callers.add(key, call)
  // a queue that a reload has made smaller is emptied by time
  if (state.waiting > rule.queueSize && callers.most > callers.countOf(key)) callers.newestOfMost()?.giveWay(rule)
}

export function leaveQueue(state: RuleState, key: string): void {
  state.waiting--
  if (state.rule.by.length > 0) state.callers.remove(key)
}
