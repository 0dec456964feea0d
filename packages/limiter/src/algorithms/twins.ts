import type { Twin } from './algorithm.ts'
import { bucketTwin } from './bucket-twin.ts'
import { concurrencyTwin } from './concurrency.ts'
import { fixedWindowTwin } from './fixed-window.ts'
import { slidingLogTwin } from './sliding-log.ts'
import { slidingWindowTwin } from './sliding-window-twin.ts'
import { smoothTwin } from './smooth.ts'

/** The Lua of all algorithms that rules can name: processes with other rules may have counted by any of them. */
export const twins: readonly Twin[] = [
  bucketTwin,
  concurrencyTwin,
  fixedWindowTwin,
  slidingLogTwin,
  slidingWindowTwin,
  smoothTwin,
]
