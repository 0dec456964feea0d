import type { LuaAlgorithm } from '../algorithm.ts'
import {
  blockLua,
  bucketLua,
  calendarWindowLua,
  concurrencyLua,
  fixedWindowLua,
  slidingLogLua,
  slidingWindowLua,
  smoothLua,
} from './generated.ts'

/** The Lua of all algorithms that rules can name: processes with other rules may have counted by any of them. */
export const luaAlgorithms: readonly LuaAlgorithm[] = [
  blockLua,
  bucketLua,
  calendarWindowLua,
  concurrencyLua,
  fixedWindowLua,
  slidingLogLua,
  slidingWindowLua,
  smoothLua,
]
