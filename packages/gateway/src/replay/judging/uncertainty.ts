import type { CompiledRule } from 'diana-limiter/gateway'
import type { Uncertainty } from './bounds/floor.ts'

/**
 * Returns how exactly the moments of calls are known if a log has ticks. Calls that wait for a concurrency slot are charged by the
 * other rules when they get one.
 */
export function uncertaintyOf(rules: readonly CompiledRule[], tickUs: number, isStartOfTick: boolean): Uncertainty {
  const waits = rules.map(rule =>
    rule.queueSize > 0 && rule.meters.some(meter => meter.needsRelease) ? rule.queueTimeoutMs : 0,
  )
  const waitUs = Math.ceil((Math.max(0, ...waits) * 1000) / tickUs) * tickUs
  const widthUs = (isStartOfTick ? tickUs : 2 * tickUs) + waitUs
  return { tickUs, widthUs, aheadUs: widthUs - tickUs }
}
