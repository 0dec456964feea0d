import type { LuaAlgorithm } from '../algorithm.ts'
import { concurrencyLua } from '../concurrency.ts'
import { fixedWindowLua } from '../fixed-window.ts'
import { slidingLogLua } from '../sliding-log.ts'
import { smoothLua } from '../smooth.ts'
import { bucketLua } from './bucket.ts'
import { slidingWindowLua } from './sliding-window.ts'

/** The Lua of all algorithms that rules can name: processes with other rules may have counted by any of them. */
export const luaAlgorithms: readonly LuaAlgorithm[] = [
  bucketLua,
  concurrencyLua,
  fixedWindowLua,
  slidingLogLua,
  slidingWindowLua,
  smoothLua,
]
