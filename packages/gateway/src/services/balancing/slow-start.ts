/** What an address gets at first, as a part of its weight. */
const firstPart = 0.1

/** The share of an address that came back, or was added, `ageMs` ago: it grows evenly until it is the whole weight. */
export function rampedShare(weight: number, ageMs: number, slowStartMs: number): number {
  return ageMs >= slowStartMs ? weight : weight * Math.max(firstPart, ageMs / slowStartMs)
}
