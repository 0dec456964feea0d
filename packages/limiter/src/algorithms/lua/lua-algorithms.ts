import type { LuaAlgorithm } from '../algorithm.ts'
import { concurrencyTwin } from '../concurrency.ts'
import { fixedWindowTwin } from '../fixed-window.ts'
import { slidingLogTwin } from '../sliding-log.ts'
import { smoothTwin } from '../smooth.ts'
import { bucketTwin } from './bucket.ts'
import { slidingWindowTwin } from './sliding-window.ts'

/** The Lua of all algorithms that rules can name: processes with other rules may have counted by any of them. */
export const twins: readonly LuaAlgorithm[] = [
  bucketTwin,
  concurrencyTwin,
  fixedWindowTwin,
  slidingLogTwin,
  slidingWindowTwin,
  smoothTwin,
]
