import type { CompiledRule } from 'diana-limiter/gateway'
import { Callers } from './callers.ts'
import { Timeline } from './timeline.ts'

/** The counts of one rule. */
export interface RuleFigures {
  readonly rule: CompiledRule
  calls: number
  /** Refused by the rule's list of callers. */
  denied: number
  /** Calls of callers that found no room in the table: whether they were refused is not known. */
  untracked: number
  readonly callers: Callers
  readonly timeline: Timeline
}

/**
 * Creates the figures of a rule; `widthUs` is the precision of moments, and `onForget` is called with the slots of callers that
 * leave the table.
 */
export function createRuleFigures(
  rule: CompiledRule,
  widthUs: number,
  maxKeys: number,
  onForget: (slot: number) => void,
): RuleFigures {
  const periodUs = (rule.limits[0]?.periodMs ?? 0) * 1000
  // calls whose moments are at most this far apart came within one period for sure
  const lengthUs = widthUs === 0 ? periodUs : periodUs - widthUs + 1
  const callers = new Callers(periodUs, lengthUs, maxKeys, onForget)
  return { rule, calls: 0, denied: 0, untracked: 0, callers, timeline: new Timeline() }
}

/** Returns how many calls a rule has refused. */
export function refusedBy({ callers, denied, untracked }: RuleFigures): { least: number; most: number } {
  const { folded } = callers
  let least = folded.least + denied
  let most = folded.most + denied + untracked
  for (const caller of callers.present()) {
    least += caller.least
    most += caller.most
  }
  return { least, most }
}

/** The counts of all calls. */
export class TotalFigures {
  calls = 0
  least = 0
  most = 0
  /** Refused regardless of counts. */
  denied = 0
  readonly timeline: Timeline = new Timeline()
}
