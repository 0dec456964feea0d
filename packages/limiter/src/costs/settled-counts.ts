/**
 * The way in which the cost of a call was settled: by the usage in the answer, by a header, at the estimate because the answer said
 * nothing, or at nothing because the call was not served.
 */
export type SettledBy = 'usage' | 'header' | 'estimate' | 'none'

/** The numbers of calls that were settled in each way, and of answers that reported more than their rule accepts. */
export type SettledCounts = Readonly<Record<SettledBy | 'bounded', number>>

export const settledNames: readonly (keyof SettledCounts)[] = ['usage', 'header', 'estimate', 'none', 'bounded']

/** Merges the counts of several processes. */
export function mergeSettled(counts: readonly (SettledCounts | undefined)[]): SettledCounts | undefined {
  const known = counts.filter(one => one !== undefined)
  if (known.length === 0) return undefined
  const sum = (name: keyof SettledCounts) => known.reduce((total, one) => total + (one[name] ?? 0), 0)
  return Object.fromEntries(settledNames.map(name => [name, sum(name)])) as SettledCounts
}
