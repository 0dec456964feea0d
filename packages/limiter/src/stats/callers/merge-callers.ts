import type { CallerQuery, CallerUsage } from './caller-usage.ts'

/** Merges the callers of several processes. */
export function mergeCallers(
  all: readonly (readonly CallerUsage[])[],
  { count, sort = 'refused' }: Pick<CallerQuery, 'count' | 'sort'>,
): CallerUsage[] {
  const merged = new Map<string, CallerUsage>()
  for (const caller of all.flat()) {
    const id = JSON.stringify([caller.rule, caller.key])
    const known = merged.get(id)
    merged.set(id, known ? add(known, caller) : caller)
  }
  const [first, second] = sort === 'calls' ? (['calls', 'refused'] as const) : (['refused', 'calls'] as const)
  return [...merged.values()].sort((a, b) => b[first] - a[first] || b[second] - a[second]).slice(0, count)
}

function add(one: CallerUsage, other: CallerUsage): CallerUsage {
  const newer = other.lastAt > one.lastAt ? other : one
  const sums = (a: readonly number[], b: readonly number[]) => a.map((count, i) => count + (b[i] ?? 0))
  return {
    ...newer,
    calls: one.calls + other.calls,
    callsError: Math.ceil(Math.hypot(one.callsError, other.callsError)),
    refused: one.refused + other.refused,
    refusedError: Math.ceil(Math.hypot(one.refusedError, other.refusedError)),
    missed: one.missed + other.missed,
    firstAt: Math.min(one.firstAt, other.firstAt),
    refusedAt: Math.max(one.refusedAt, other.refusedAt),
    timeline: {
      calls: sums(one.timeline.calls, other.timeline.calls),
      refused: sums(one.timeline.refused, other.timeline.refused),
    },
  }
}
