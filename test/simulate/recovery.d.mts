import type { Recovery } from '../../packages/limiter/src/stores/failover/recovery.ts'
import type { Fleet } from '../../packages/limiter/src/stores/membership/fleet.ts'

export interface SimulationOptions {
  readonly processes: number
  readonly seed: number
  readonly latencyMs?: number
  readonly loss?: number
  readonly kind?: 'refused' | 'silent'
  readonly dead?: number
}

export interface Simulated {
  readonly processes: number
  readonly seed: number
  /** Processes that were not back after a minute. */
  readonly missing: number
  /** From the moment the store was there again until the last process was back. */
  readonly backMs: number
  /** Between the first and the last that was back. */
  readonly spreadMs: number
  readonly commands: number
  /** Of the thread of Redis, in the busiest second. */
  readonly busiestMs: number
}

export function simulateRecovery(
  parts: { readonly Recovery: typeof Recovery; readonly Fleet: typeof Fleet },
  options: SimulationOptions,
): Promise<Simulated>
