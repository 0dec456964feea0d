export const SORTS = ['name', 'load', 'calls', 'refused', 'cost'] as const
export type SortName = (typeof SORTS)[number]

/** The order of rules; undefined is the order of their documents. */
export interface Sort {
  readonly by: SortName
  readonly direction: 'ascending' | 'descending'
}

/** Reads `refused` and, for descending, `-refused`. */
export function parseSort(text: string): Sort | undefined {
  const by = SORTS.find(name => name === text.replace(/^-/, ''))
  return by && { by, direction: text.startsWith('-') ? 'descending' : 'ascending' }
}

/** Returns the order that the next click on a column puts into the address: the useful direction first, then the other one, then none. */
export function nextSort(sort: Sort | undefined, by: SortName): string {
  const [first, second] = by === 'name' ? ['name', '-name'] : [`-${by}`, by]
  if (sort?.by !== by) return first!
  const current = sort.direction === 'descending' ? `-${by}` : by
  return current === first ? second! : ''
}

/** A number of a rule, by its id. */
export type Figure = (id: string) => number

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
