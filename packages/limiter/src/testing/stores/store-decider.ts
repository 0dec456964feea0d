import type { CompiledRule } from '../../rules/compile.ts'
import { fleetCharge, type SharedStore } from '../../stores/store.ts'
import type { TimelineAnswer } from '../timeline.ts'

/** Decides calls by one rule, as a shared store answers them. */
export function createStoreDecider(
  store: SharedStore,
  rule: CompiledRule,
): (cost: number, key: string) => Promise<TimelineAnswer> {
  const counter = store.createCounter(rule)
  return async (cost, key) => {
    const charge = { ...fleetCharge(counter), key, cost, mayWait: rule.queueSize > 0 }
    const { allowed } = await store.take([charge])
    const late = rule.meters.map((meter, level) => {
      return Math.max(0, charge.delays[level]! - (charge.mayWait ? meter.maxWaitUs : 0))
    })
    return {
      allowed,
      waitMs: allowed && rule.enforced ? charge.wait / 1000 : 0,
      retryAfterMs: rule.enforced ? Math.max(...late) / 1000 : 0,
      decisions: rule.meters.map((_, level) => {
        return { remaining: charge.remaining[level]!, resetAfterMs: charge.resets[level]! / 1000 }
      }),
    }
  }
}
