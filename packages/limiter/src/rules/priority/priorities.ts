import type { Call } from '../../call.ts'
import { type KeyInput, readerOf } from '../../dimensions/key.ts'
import { compileMatch } from '../match/match.ts'
import { isAmbiguous, readingsOfCall } from '../match/reading.ts'
import type { Reading } from '../match/search.ts'
import type { PriorityEntry } from '../rule.ts'
import { levelNamed, namedLevels } from './levels.ts'

/** The levels of a document, and which call has which. */
export interface Priorities {
  /** From the lowest to the highest. */
  readonly levels: readonly number[]
  /**
   * Returns the level of a call: what the first line says that has one for it; if servers may read the call in several ways, the
   * lowest of them.
   */
  levelOf(call: Call): number
  /** Returns the rank of a level: 0 for the lowest, 1 for the highest. */
  rankOf(level: number): number
}

const DEFAULT_LEVEL = namedLevels.default!

export function compilePriorities(entries: readonly PriorityEntry[], lookup: KeyInput): Priorities {
  const compiled = entries.map(entry => ({ match: entry.match, levelOf: readerFor(entry, lookup) }))
  const match = compileMatch(compiled)
  const found: typeof compiled = []
  const levels = [...new Set([DEFAULT_LEVEL, ...entries.flatMap(levelsIn)])].sort((a, b) => a - b)
  const highest = Math.max(1, levels.length - 1)
  const levelBy = (call: Call, reading?: Reading): number => {
    const size = match(call, found, reading)
    for (let i = 0; i < size; i++) {
      const level = found[i]!.levelOf(call)
      if (level !== undefined) return level
    }
    return DEFAULT_LEVEL
  }
  return {
    levels,
    levelOf(call) {
      if (!isAmbiguous(call)) return levelBy(call)
      // rules about each reading hold, but a caller must not get a level by a reading that the handler does not have
      const readings = readingsOfCall(call)
      return readings === undefined ? levels[0]! : Math.min(...readings.map(reading => levelBy(call, reading)))
    },
    rankOf(level) {
      const above = levels.findIndex(one => one > level)
      return Math.max(0, (above < 0 ? levels.length : above) - 1) / highest
    },
  }
}

function levelsIn({ level, levels = {}, header }: PriorityEntry): number[] {
  if (header !== undefined) return Object.values(namedLevels)
  return level === undefined ? Object.values(levels) : [level]
}

function readerFor(
  { level, by, levels = {}, header }: PriorityEntry,
  lookup: KeyInput,
): (call: Call) => number | undefined {
  if (header !== undefined) {
    // callers would all call themselves critical
    return call => (call.trustedPeer === true ? levelNamed(call.headers?.[header]) : undefined)
  }
  if (by === undefined) return () => level
  const read = readerOf(by, lookup)
  return call => {
    const value = read(call)
    return value !== undefined && Object.hasOwn(levels, value) ? levels[value] : undefined
  }
}
