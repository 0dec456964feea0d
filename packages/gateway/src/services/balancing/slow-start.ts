/** The part of its weight that an address gets at first. */
const firstPart = 0.1

/** Returns the share of an address that came back, or was added, `ageMs` ago: it grows evenly until it is the whole weight. */
export function rampedShare(weight: number, ageMs: number, slowStartMs: number): number {
  return ageMs >= slowStartMs ? weight : weight * Math.max(firstPart, ageMs / slowStartMs)
}
