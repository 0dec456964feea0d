import { noCounts, type Stats } from '../stats.ts'
import type { Counts } from '../tally.ts'

/** The counts that are kept of a time: a second, or a longer step. */
export interface SecondCounts {
  readonly allowed: number
  readonly refused: number
  readonly waited: number
  readonly shadowRefused: number
}

export interface RuleCounts extends SecondCounts {
  readonly id: string
}

export const historyNames = ['allowed', 'refused', 'waited', 'shadowRefused'] as const

/** Computes what was counted between two readings of statistics, which only grow. */
export class CountDeltas {
  #before = new Map<string, Counts>()
  #totalBefore: Counts | undefined

  /** Returns what was counted since the last call, without the rules that met no call; the first call only reads. */
  take({ total, rules }: Stats): { readonly total: SecondCounts; readonly rules: RuleCounts[] } {
    const isFirst = this.#totalBefore === undefined
    const counted: RuleCounts[] = []
    for (const rule of rules) {
      const counts = since(rule, isFirst ? rule : this.#before.get(rule.id))
      if (historyNames.some(name => counts[name] > 0)) counted.push({ id: rule.id, ...counts })
    }
    const taken = { total: since(total, this.#totalBefore ?? total), rules: counted }
    this.#before = new Map(rules.map(rule => [rule.id, rule]))
    this.#totalBefore = total
    return taken
  }
}

function since(now: Counts, before: Counts = noCounts): SecondCounts {
  return {
    allowed: grown(now.allowed, before.allowed),
    refused: grown(now.refused, before.refused),
    waited: grown(now.waited, before.waited),
    shadowRefused: grown(now.shadowRefused, before.shadowRefused),
  }
}

/** Returns the growth of a count; one that became smaller started again, with another rule of the same name or in another process. */
export function grown(now: number, before: number): number {
  return now < before ? now : now - before
}
