import { useRef } from 'preact/hooks'
import type { Rule } from '../api/types.ts'
import { costsByRule, loadOf, ringOf, second } from '../figures/live.ts'
import { SECONDS } from '../figures/ring.ts'

export const SORTS = ['name', 'load', 'calls', 'refused', 'cost'] as const
export type SortName = (typeof SORTS)[number]

/** How rules are sorted; undefined is the order of their documents. */
export interface Sort {
  readonly by: SortName
  readonly direction: 'ascending' | 'descending'
}

/** Rules are sorted again at most this often: rows that move all the time cannot be read. */
const EVERY_SECONDS = 3

/** Reads `refused` and, for descending, `-refused`. */
export function parseSort(text: string): Sort | undefined {
  const by = SORTS.find(name => name === text.replace(/^-/, ''))
  return by && { by, direction: text.startsWith('-') ? 'descending' : 'ascending' }
}

/** What the address says of the next click on a column: the useful direction first, then the other one, then none. */
export function nextSort(sort: Sort | undefined, by: SortName): string {
  const [first, second] = by === 'name' ? ['name', '-name'] : [`-${by}`, by]
  if (sort?.by !== by) return first!
  const current = sort.direction === 'descending' ? `-${by}` : by
  return current === first ? second! : ''
}

/** Calls of a rule in the last five minutes. */
export function callsOf(id: string): number {
  const ring = ringOf(id)
  return ring === undefined ? 0 : ring.sum(second.value, SECONDS, 'allowed') + refusedOf(id)
}

/** Calls that a rule refused in the last five minutes. */
export function refusedOf(id: string): number {
  return ringOf(id)?.sum(second.value, SECONDS, 'refused') ?? 0
}

/** What calls of each rule have cost since the gateway started; empty if no rule has costs. */
export function settledCosts(): ReadonlyMap<string, number> {
  return new Map(costsByRule().map(([id, { amounts }]) => [id, amounts?.settled ?? 0]))
}

type Figure = (id: string) => number

/** Sorts by a figure, or by name; rules of one figure are in the order of their names. */
export function sortRules<Item extends { readonly id: string }>(
  rules: readonly Item[],
  { by, direction }: Sort,
  figure: Figure,
): readonly Item[] {
  const sign = direction === 'descending' ? -1 : 1
  const keyed = rules.map(rule => ({ rule, value: by === 'name' ? 0 : figure(rule.id) }))
  keyed.sort((one, other) => {
    const names = one.rule.id < other.rule.id ? -1 : one.rule.id > other.rule.id ? 1 : 0
    if (by === 'name') return sign * names
    return sign * (one.value - other.value) || names
  })
  return keyed.map(({ rule }) => rule)
}

/** The rules in their order, which is looked at again every few seconds. */
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
