/**
 * How the costs of calls were settled: by the usage in the answer, by a header, at the estimate because the answer said nothing, or
 * at nothing because the call was not served.
 */
export type SettledBy = 'usage' | 'header' | 'estimate' | 'none'

/** How many calls were settled in each way, and how many answers reported more than their rule accepts. */
export type SettledCounts = Readonly<Record<SettledBy | 'bounded', number>>

export const settledNames: readonly (keyof SettledCounts)[] = ['usage', 'header', 'estimate', 'none', 'bounded']

/** Of several processes, as one. */
export function mergeSettled(counts: readonly (SettledCounts | undefined)[]): SettledCounts | undefined {
  const known = counts.filter(one => one !== undefined)
  if (known.length === 0) return undefined
  const sum = (name: keyof SettledCounts) => known.reduce((total, one) => total + (one[name] ?? 0), 0)
  return Object.fromEntries(settledNames.map(name => [name, sum(name)])) as SettledCounts
}
