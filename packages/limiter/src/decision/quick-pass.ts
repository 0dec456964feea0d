import type { PassResult } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { isFunctionName } from '../dimensions/reading/given-functions.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { Counters } from '../stats/counters.ts'
import { OVERFLOW_SLOT, resetsSoFar } from '../stores/memory/table.ts'
import { type LevelAnswer, PendingVerdict, type VerdictOutcome } from './pending-verdict.ts'
import type { RuleState } from './rule-state.ts'

/**
 * Decides most calls: those of known callers that pass at once, by rules that count in this process and need nothing else. Each
 * rule counts the call by one move of its meter, and the verdict is made of what the moves report. All other calls are decided
 * by charges.
 */
export class QuickPass {
  readonly #passed: VerdictOutcome
  readonly #counters: Counters
  readonly #slots: number[] = []
  readonly #result: PassResult = { delay: 0, remaining: 0, idleAt: 0 }

  constructor(passed: VerdictOutcome, counters: Counters) {
    this.#passed = passed
    this.#counters = counters
  }

  /** Returns the verdict on a call of cost 1 that the first `size` rules decide; undefined if it has to be decided by charges. */
  take(call: Call, found: RuleState[], size: number, now: number): PendingVerdict | undefined {
    if (!this.#locate(call, found, size, now)) return undefined
    const result = this.#result
    let levels: LevelAnswer | undefined
    // from the last to the first, so that the answers become a list in the order of the rules
    for (let i = size - 1; i >= 0; i--) {
      const { rule, table, tally } = found[i]!
      const slot = this.#slots[i]!
      const meter = table.meters[0]!
      // all others are known to let the call pass
      if (!table.swift!.pass(table.state(slot), table.base(slot), now, 1, result)) return undefined
      const { remaining, idleAt } = result
      tally.allowed++
      levels = { rule, meter, remaining, resetUs: idleAt > now ? idleAt - now : 0, lateUs: undefined, next: levels }
    }
    const { total, tracksLoads } = this.#counters
    total.allowed++
    if (tracksLoads) noteLoads(found, levels)
    return new PendingVerdict(this.#passed, call, now, resetsSoFar(), levels, undefined)
  }

  /**
   * Finds the slots of the call's keys. False if a rule needs more than one move, a key has no slot yet, or a rule does not let
   * the call pass at once; whether the last one does, its move will show.
   */
  #locate(call: Call, found: RuleState[], size: number, now: number): boolean {
    for (let i = 0; i < size; i++) {
      let state = found[i]!
      if (!state.isQuick) return false
      const key = state.rule.key(call)
      if (state.plans !== undefined) {
        state = state.plans.stateFor(call, key)
        found[i] = state
      }
      const { table } = state
      if (table.swift === undefined) return false
      const slot = table.find(key)
      if (slot === OVERFLOW_SLOT && key.length > 0) return false
      if (table.family?.isMoved(key)) return false
      this.#slots[i] = slot
      if (i + 1 < size && table.meters[0]!.delay(table.state(slot), table.base(slot), now, 1) > 0) return false
    }
    return true
  }
}

/** True if calls by a rule need nothing but to be counted in this process, once and by 1. */
export function countsQuickly({ rule, counter, blocks }: Pick<RuleState, 'rule'> & Partial<RuleState>): boolean {
  if (counter !== undefined || blocks !== undefined || rule.cost !== undefined || endMatters(rule)) return false
  // a function of the program may return another value when the call is settled
  return !rule.by.some(isFunctionName)
}

/** True if calls of a rule hold a concurrency slot, are counted by how they end, or are settled then. */
export function endMatters({ countWhen, resetWhen, holdMs, meters }: CompiledRule): boolean {
  if (countWhen !== undefined || resetWhen !== undefined || holdMs !== undefined) return true
  return meters.some(meter => meter.held !== undefined)
}

function noteLoads(found: readonly RuleState[], levels: LevelAnswer | undefined): void {
  for (let one = levels, i = 0; one !== undefined; one = one.next, i++) {
    const { least } = found[i]!.tally
    if (one.remaining < least[0]!) least[0] = one.remaining
  }
}
