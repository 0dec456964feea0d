import { useRef } from 'preact/hooks'
import type { Rule } from '../api/generated.ts'
import { costsByRule, loadOf, ringOf, second } from '../figures/live.ts'
import { SECONDS } from '../figures/ring.ts'
import { type Figure, type Sort, type SortName, sortRules } from './sort-order.ts'

/** Rules are sorted again at most this often: rows that move all the time cannot be read. */
const EVERY_SECONDS = 3

/** Calls of a rule in the last five minutes. */
export function callsOf(id: string): number {
  const ring = ringOf(id)
  return ring === undefined ? 0 : ring.sum(second.value, SECONDS, 'allowed') + refusedOf(id)
}

/** Calls that a rule refused in the last five minutes. */
export function refusedOf(id: string): number {
  return ringOf(id)?.sum(second.value, SECONDS, 'refused') ?? 0
}

/** Returns the costs of the calls of each rule since the gateway started; empty if no rule has costs. */
export function settledCosts(): ReadonlyMap<string, number> {
  return new Map(costsByRule().map(([id, { amounts }]) => [id, amounts?.settled ?? 0]))
}

/** Returns the rules in their order, which is computed again every few seconds. */
export function useSortedRules(rules: readonly Rule[], sort: Sort | undefined): readonly Rule[] {
  const kept = useRef<{ rules: readonly Rule[]; sort: string; at: number; sorted: readonly Rule[] } | undefined>(
    undefined,
  )
  if (sort === undefined) return rules
  const name = `${sort.by} ${sort.direction}`
  const now = second.value
  const { current } = kept
  if (current?.rules === rules && current.sort === name && now - current.at < EVERY_SECONDS) return current.sorted
  const costs = settledCosts()
  const figures: Record<SortName, Figure> = {
    name: () => 0,
    load: id => loadOf(id) ?? -1,
    calls: callsOf,
    refused: refusedOf,
    cost: id => costs.get(id) ?? -1,
  }
  const sorted = sortRules(rules, sort, figures[sort.by])
  kept.current = { rules, sort: name, at: now, sorted }
  return sorted
}
